// SPDX-License-Identifier: Apache-2.0
// Triangles with normals: six numbers per corner, position and normal.

const CREASE = Math.cos(0.6); // sharper edges stay edges
const AROUND = 40;

/** Corners of a mesh with normals that are smooth where the surface is. */
function corners(vertices, faces) {
  const count = faces.length / 3;
  const normals = new Float32Array(3 * count); // as long as twice the area
  for (let face = 0; face < count; face++) {
    const corner = (i) => vertices.subarray(3 * faces[3 * face + i], 3 * faces[3 * face + i] + 3);
    const [a, b, c] = [0, 1, 2].map(corner);
    normals.set(cross(subtract(b, a), subtract(c, a)), 3 * face);
  }
  const starts = new Uint32Array(vertices.length / 3 + 1);
  for (const vertex of faces) starts[vertex + 1]++;
  for (let vertex = 1; vertex < starts.length; vertex++) starts[vertex] += starts[vertex - 1];
  const next = starts.slice();
  const around = new Uint32Array(faces.length);
  for (let corner = 0; corner < faces.length; corner++) around[next[faces[corner]]++] = Math.floor(corner / 3);

  const result = new Float32Array(6 * faces.length);
  for (let corner = 0; corner < faces.length; corner++) {
    const vertex = faces[corner];
    const face = 3 * Math.floor(corner / 3);
    const own = [normals[face], normals[face + 1], normals[face + 2]];
    const length = norm(own);
    const sum = [0, 0, 0];
    for (let i = starts[vertex]; i < starts[vertex + 1]; i++) {
      const at = 3 * around[i];
      const [x, y, z] = [normals[at], normals[at + 1], normals[at + 2]];
      if (x * own[0] + y * own[1] + z * own[2] >= CREASE * length * Math.hypot(x, y, z)) {
        sum[0] += x; sum[1] += y; sum[2] += z;
      }
    }
    result.set(vertices.subarray(3 * vertex, 3 * vertex + 3), 6 * corner);
    result.set(unit(sum), 6 * corner + 3);
  }
  return result;
}

/** Surface of revolution about z of an outline of [radius, height]. */
function revolved(outline) {
  const vertices = [];
  const faces = [];
  for (const [radius, height] of outline) {
    for (let i = 0; i < AROUND; i++) {
      const angle = 2 * Math.PI * i / AROUND;
      vertices.push(radius * Math.cos(angle), radius * Math.sin(angle), height);
    }
  }
  for (let ring = 0; ring + 1 < outline.length; ring++) {
    for (let i = 0; i < AROUND; i++) {
      const [a, b] = [ring * AROUND + i, ring * AROUND + (i + 1) % AROUND];
      if (outline[ring][0] > 0) faces.push(a, b, b + AROUND);
      if (outline[ring + 1][0] > 0) faces.push(a, b + AROUND, a + AROUND);
    }
  }
  return corners(new Float32Array(vertices), new Uint32Array(faces));
}

function unitBox() {
  const vertices = [];
  for (const x of [-0.5, 0.5]) for (const y of [-0.5, 0.5]) for (const z of [-0.5, 0.5]) vertices.push(x, y, z);
  const sides = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]];
  const faces = sides.flatMap(([a, b, c, d]) => [a, b, c, a, c, d]);
  return corners(new Float32Array(vertices), new Uint32Array(faces));
}

const SOLIDS = {
  ball: revolved(Array.from({length: 21}, (_, i) => Math.PI * i / 20).map(
    (angle) => [Math.sin(angle), -Math.cos(angle)])),
  /** Radius 1, from z = 0 to 1. */
  rod: revolved([[0, 0], [1, 0], [1, 1], [0, 1]]),
  /** Base of radius 1 at z = 0, apex at z = 1. */
  head: revolved([[0, 0], [1, 0], [0, 1]]),
  /** Apex at the origin, open to a circle of radius 1 at z = 1. */
  funnel: revolved([[0, 0], [1, 1]]),
  /** Flat ring between the radii 0.72 and 1. */
  ring: revolved([[1, 0], [0.72, 0]]),
  /** Torus of radius 1 and thickness 0.02. */
  hoop: revolved(Array.from({length: 9}, (_, i) => Math.PI * i / 4).map(
    (angle) => [1 + 0.02 * Math.sin(angle), -0.02 * Math.cos(angle)])),
  box: unitBox(),
};
