// SPDX-License-Identifier: Apache-2.0
// A camera that circles a target. One finger or the left button turns, two fingers or the right button move
// and zoom, the wheel zooms, a double click returns.

class Camera {
  /** Home is the first view, focus tells what it looks at, changed is called when the view changes. */
  constructor(canvas, home, focus, changed) {
    this.home = home;
    this.changed = changed;
    this.focus = focus;
    this.centre = focus(); // what is followed
    this.pointers = new Map();
    this.reset();
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, event);
    });
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, (event) => this.pointers.delete(event.pointerId));
    }
    canvas.addEventListener("pointermove", (event) => this.move(event, canvas));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(0.0012 * event.deltaY));
    }, {passive: false});
    canvas.addEventListener("dblclick", () => this.reset());
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  }

  reset() {
    Object.assign(this, this.home, {offset: add(this.home.offset, subtract(this.focus(), this.centre))});
    this.changed();
  }

  /** Follow a point or stay: what is seen does not jump. */
  recentre(centre) {
    this.offset = add(this.offset, subtract(this.centre, centre));
    this.centre = centre;
  }

  get target() { return add(this.centre, this.offset); }

  get eye() {
    const [across, up] = [Math.cos(this.elevation), Math.sin(this.elevation)];
    const away = [across * Math.cos(this.azimuth), across * Math.sin(this.azimuth), up];
    return add(this.target, times(this.distance, away));
  }

  /** From the world to clip coordinates, for a picture of this aspect. */
  project(aspect) {
    // A narrow picture shows as much of the width as a square one.
    const field = aspect < 1 ? 2 * Math.atan(Math.tan(FIELD_OF_VIEW / 2) / aspect) : FIELD_OF_VIEW;
    const lens = perspective(field, aspect, 0.02 * this.distance, 60 + 2 * this.distance);
    this.matrix = product(lens, looking(this.eye, this.target));
  }

  move(event, canvas) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
    const height = canvas.clientHeight;
    if (this.pointers.size === 2) {
      const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
      const apart = (e) => Math.hypot(e.clientX - other.clientX, e.clientY - other.clientY);
      this.zoom(apart(before) / Math.max(apart(event), 1));
      this.pan(dx / 2 / height, dy / 2 / height);
    } else if (event.buttons & 6 || event.shiftKey) {
      this.pan(dx / height, dy / height);
    } else {
      this.azimuth -= 5 * dx / height;
      this.elevation = Math.min(Math.max(this.elevation + 5 * dy / height, -0.2), 1.56);
    }
    this.pointers.set(event.pointerId, event);
    this.changed();
  }

  pan(right, down) {
    const reach = 2 * this.distance * Math.tan(FIELD_OF_VIEW / 2);
    const z = unit(subtract(this.eye, this.target));
    const x = unit(cross([0, 0, 1], z));
    this.offset = add(this.offset, add(times(-reach * right, x), times(reach * down, cross(z, x))));
  }

  zoom(factor) {
    this.distance = Math.min(Math.max(this.distance * factor, 0.15), 40);
    this.changed();
  }
}
