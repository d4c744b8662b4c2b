// SPDX-License-Identifier: Apache-2.0
// From the estimate at an instant to what is drawn of it.

const ESTIMATED = [0.46, 0.22, 0.74];
const NOMINAL = [0.42, 0.45, 0.48];
const FAINTEST = 2; // [N] weaker forces are not drawn
const STANDARD_DEVIATIONS = 2;
const EDGE = 0.0028; // [m] of the boxes of inertia

class Drawing {
  constructor(replay, renderer) {
    this.replay = replay;
    this.about = replay.about;
    const given = Object.entries(SOLIDS).map(([name, data]) => [name, renderer.mesh(data)]);
    this.solids = Object.fromEntries(given);
    const count = Object.keys(replay.places).filter((name) => name.startsWith("faces_")).length;
    this.meshes = Array.from({length: count}, (_, i) =>
      renderer.mesh(corners(replay.array(`vertices_${i}`), replay.array(`faces_${i}`))));
    this.colours = this.about.contacts.map((contact) => colourOf(contact.colour));
    const {com, bodies, contacts} = replay.at(0);
    const places = [...bodies.map((body) => body.position), ...contacts.map((contact) => contact.point)];
    this.reach = Math.max(...places.map((place) => norm(subtract(place, com))), 0.1); // of the robot [m]
    this.mark = [0, 0, 0]; // colour of what is neither estimated nor nominal
    this.unit = Math.min(Math.max(this.reach / 0.4, 0.4), 2); // marks grow with it
  }

  items(state, shows) {
    const parts = [this.robot(state, shows.see_through)];
    if (shows.contacts) parts.push(this.contactStates(state));
    if (shows.forces) parts.push(this.forces(state));
    if (shows.cones) parts.push(this.cones(state));
    if (shows.com) parts.push(this.centreOfMass(state));
    if (shows.inertia) parts.push(this.inertia(state));
    return parts.flat();
  }

  robot(state, seeThrough) {
    return this.about.shapes.map((shape) => {
      const body = state.bodies[shape.body];
      const position = add(body.position, rotated(body.q, shape.position));
      const matrix = placed(position, turned(body.q, shape.quat_xyzw));
      return {mesh: this.meshes[shape.mesh], matrix, colour: shape.colour, skin: true, casts: true,
        alpha: seeThrough ? 0.3 : 1};
    });
  }

  /** A solid stretched along its axes, turned by q and moved; the style is the rest of the item. */
  solid(name, position, size, style, q) {
    return {...style, mesh: this.solids[name], matrix: placed(position, q, size)};
  }

  ball(position, radius, style) {
    return this.solid("ball", position, [radius, radius, radius], style);
  }

  forces(state) {
    return state.contacts.flatMap(({point, force, std}, i) => {
      if (norm(force) < FAINTEST) return [];
      const scale = this.about.metres_per_newton;
      const tip = add(point, times(scale, force));
      const spread = std.map((value) => Math.max(STANDARD_DEVIATIONS * scale * value, 1e-4));
      const halo = this.solid("ball", tip, spread, {colour: this.colours[i], alpha: 0.4, glow: 0.6});
      return [...this.arrow(point, tip, this.colours[i]), halo];
    });
  }

  arrow(from, to, colour) {
    const along = subtract(to, from);
    const length = norm(along);
    const q = alongZ(along);
    const radius = Math.min(0.0075 * this.unit, 0.08 * length);
    const head = Math.min(0.05 * this.unit, 0.5 * length);
    const neck = add(from, times((length - head) / length, along));
    const style = {colour, showsThrough: true, glow: 0.25};
    return [
      this.solid("rod", from, [radius, radius, length - head], style, q),
      this.solid("head", neck, [2.3 * radius, 2.3 * radius, head], style, q),
    ];
  }

  /** As high as the normal force, so that the tip of the arrow lies in the opening. */
  cones(state) {
    return state.contacts.flatMap(({point, force}, i) => {
      if (force[2] < FAINTEST) return [];
      const height = this.about.metres_per_newton * force[2];
      const [x, y] = times(height, this.about.contacts[i].friction.concat(0));
      const style = {colour: this.colours[i], glow: 0.5};
      return [
        this.solid("funnel", point, [x, y, height], {...style, alpha: 0.16}),
        this.solid("hoop", add(point, [0, 0, height]), [x, y, 0.15], style),
      ];
    });
  }

  /** A ring on the ground under every foot that touches it. */
  contactStates(state) {
    return state.contacts.flatMap(({point, probability}, i) => {
      if (probability < 0.02) return [];
      const ground = [point[0], point[1], this.about.ground + 0.0015];
      const radius = 0.05 * this.unit;
      const style = {colour: this.colours[i], alpha: 0.9 * probability, glow: 1};
      return [this.solid("ring", ground, [radius, radius, 1], style)];
    });
  }

  /** A ball, the nominal one grey, and a line down to the ground. */
  centreOfMass(state) {
    const identified = this.about.inertia.length > 0;
    const radius = 0.017 * this.unit;
    const below = [state.com[0], state.com[1], this.about.ground];
    const height = Math.max(state.com[2] - below[2], 1e-3);
    const thin = 0.0016 * this.unit;
    const style = {showsThrough: true, glow: 0.2};
    const marks = [
      this.ball(state.com, radius, {...style, colour: identified ? ESTIMATED : this.mark}),
      this.solid("rod", below, [thin, thin, height], {colour: this.mark, showsThrough: true}),
      this.solid("ring", add(below, [0, 0, 0.002]), [radius, radius, 1], {colour: this.mark, alpha: 0.99, glow: 1}),
    ];
    if (identified) marks.push(this.ball(state.comNominal, 0.8 * radius, {...style, colour: NOMINAL}));
    return marks;
  }

  inertia(state) {
    return this.about.inertia.flatMap((link) => {
      const body = state.bodies[link.body];
      const marks = [
        ...this.boxOf(body, link.nominal, NOMINAL, 0.05), ...this.boxOf(body, link.estimate, ESTIMATED, 0.16),
      ];
      const style = {colour: ESTIMATED, alpha: 0.75, glow: 0.4};
      if (link.payload) marks.push(this.ball(this.payloadPlace(state, link), 0.022 * this.unit, style));
      return marks;
    });
  }

  /** Where the mass is that explains the change of a link. */
  payloadPlace(state, link) {
    const body = state.bodies[link.body];
    return add(body.position, rotated(body.q, link.payload));
  }

  boxOf(body, box, colour, alpha) {
    const centre = add(body.position, rotated(body.q, box.com));
    const q = turned(body.q, box.quat_xyzw);
    const faces = this.solid("box", centre, box.size, {colour, alpha, glow: 0.5}, q);
    const edges = [];
    for (let axis = 0; axis < 3; axis++) {
      const [second, third] = [(axis + 1) % 3, (axis + 2) % 3];
      for (const [i, j] of [[-1, -1], [-1, 1], [1, -1], [1, 1]]) {
        const middle = [0, 0, 0];
        middle[second] = i * box.size[second] / 2;
        middle[third] = j * box.size[third] / 2;
        const size = [EDGE, EDGE, EDGE];
        size[axis] = box.size[axis] + EDGE;
        const style = {colour, showsThrough: true, glow: 0.8};
        edges.push(this.solid("box", add(centre, rotated(q, middle)), size, style, q));
      }
    }
    return [...edges, faces];
  }
}
