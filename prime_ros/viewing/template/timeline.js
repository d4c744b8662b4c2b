// SPDX-License-Identifier: Apache-2.0
// Normal forces with their uncertainty and contact states over time, and where the replay is.

const STRIP = 5; // [px] height of the contact state of a foot

class Timeline {
  constructor(canvas, replay, seek) {
    this.canvas = canvas;
    this.replay = replay;
    this.colours = replay.about.contacts.map((contact) => contact.colour);
    const jump = (event) => {
      const box = canvas.getBoundingClientRect();
      seek(Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1) * replay.duration);
    };
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      jump(event);
    });
    canvas.addEventListener("pointermove", (event) => { if (event.buttons) jump(event); });
    const strongest = [];
    for (let i = 2; i < replay.contact_force.length; i += 3) strongest.push(replay.contact_force[i]);
    strongest.sort((a, b) => a - b);
    this.top = 1.25 * Math.max(strongest[Math.floor(0.995 * (strongest.length - 1))], 1);
  }

  /** Draw what does not move; again when the size or the colours change. */
  resize(density) {
    const width = Math.round(this.canvas.clientWidth * density);
    const height = Math.round(this.canvas.clientHeight * density);
    Object.assign(this.canvas, {width, height});
    this.still = new OffscreenCanvas(Math.max(width, 1), Math.max(height, 1));
    this.density = density;
    const pen = this.still.getContext("2d");
    const count = this.replay.contacts;
    const strips = count * (STRIP + 1) * density;
    const time = (frame) => this.replay.time[frame] / Math.max(this.replay.duration, 1e-9) * width;
    const level = (force) => (height - strips) * (1 - Math.min(Math.max(force / this.top, 0), 1));
    const frames = this.replay.time.length;
    const step = Math.max(1, Math.floor(frames / (2 * width)));
    const value = (name, frame, contact) => this.replay[name][3 * (frame * count + contact) + 2];
    for (let contact = 0; contact < count; contact++) {
      pen.fillStyle = pen.strokeStyle = this.colours[contact];
      const outline = (sign) => {
        const points = [];
        for (let frame = 0; frame < frames; frame += step) {
          const std = value("contact_force_std", frame, contact);
          const force = value("contact_force", frame, contact) + sign * STANDARD_DEVIATIONS * std;
          points.push([time(frame), level(force)]);
        }
        return points;
      };
      pen.globalAlpha = 0.25;
      pen.beginPath();
      for (const point of [...outline(1), ...outline(-1).reverse()]) pen.lineTo(...point);
      pen.fill();
      pen.globalAlpha = 0.95;
      pen.lineWidth = 1.2 * density;
      pen.beginPath();
      for (const point of outline(0)) pen.lineTo(...point);
      pen.stroke();
      const row = height - strips + contact * (STRIP + 1) * density + density;
      for (let frame = 0; frame < frames; frame += step) {
        pen.globalAlpha = this.replay.contact_probability[frame * count + contact];
        const end = frame + step < frames ? time(frame + step) : width;
        pen.fillRect(time(frame), row, end - time(frame) + 0.6, STRIP * density);
      }
    }
  }

  draw(time, ink) {
    const pen = this.canvas.getContext("2d");
    const {width, height} = this.canvas;
    const at = time / Math.max(this.replay.duration, 1e-9) * width;
    pen.clearRect(0, 0, width, height);
    pen.globalAlpha = 0.4;
    pen.drawImage(this.still, 0, 0);
    pen.globalAlpha = 1;
    if (at >= 1) pen.drawImage(this.still, 0, 0, at, height, 0, 0, at, height);
    pen.fillStyle = ink;
    pen.fillRect(at - this.density, 0, 2 * this.density, height);
  }
}
