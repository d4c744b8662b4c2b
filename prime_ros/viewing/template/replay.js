// SPDX-License-Identifier: Apache-2.0
// The estimate over time.

class Replay {
  constructor(store, content) {
    this.about = store;
    this.places = store.arrays;
    this.content = content;
    this.time = this.array("time");
    this.contacts = store.contacts.length;
    this.bodies = store.bodies.length;
    for (const name of [
      "body_position", "body_quat_xyzw", "contact_point", "contact_force", "contact_force_std", "contact_probability",
      "com", "com_nominal",
    ]) this[name] = this.array(name);
  }

  array(name) {
    const {type, shape, offset} = this.places[name];
    const kinds = {Float32Array, Uint16Array, Uint32Array};
    return new kinds[type](this.content, offset, shape.reduce((a, b) => a * b, 1));
  }

  get duration() { return this.time[this.time.length - 1]; }

  /** Index of the last frame that is not after a time. */
  frame(time) {
    let [low, high] = [0, this.time.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.time[middle] <= time) low = middle; else high = middle - 1;
    }
    return low;
  }

  /** Everything at a time, between the frames before and after. */
  at(time) {
    const from = this.frame(time);
    const to = Math.min(from + 1, this.time.length - 1);
    const step = this.time[to] - this.time[from];
    const share = step > 0 ? Math.min(Math.max((time - this.time[from]) / step, 0), 1) : 0;
    const entry = (name, index, width, frame) => {
      const start = width * (frame * (this[name].length / width / this.time.length) + index);
      return Array.from(this[name].subarray(start, start + width));
    };
    const value = (name, index = 0, width = 3) =>
      between(entry(name, index, width, from), entry(name, index, width, to), share);
    const orientation = (index) => orientationBetween(
      entry("body_quat_xyzw", index, 4, from), entry("body_quat_xyzw", index, 4, to), share);
    return {
      time,
      bodies: Array.from({length: this.bodies}, (_, i) => (
        {position: value("body_position", i), q: orientation(i)})),
      contacts: Array.from({length: this.contacts}, (_, i) => ({
        point: value("contact_point", i),
        force: value("contact_force", i),
        std: value("contact_force_std", i),
        probability: value("contact_probability", i, 1)[0],
      })),
      com: value("com"),
      comNominal: value("com_nominal"),
    };
  }
}

/** The arrays that the page carries. */
function contentOf(text) {
  const bytes = atob(text.trim());
  const content = new Uint8Array(bytes.length);
  for (let i = 0; i < bytes.length; i++) content[i] = bytes.charCodeAt(i);
  return content.buffer;
}
