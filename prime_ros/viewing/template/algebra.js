// SPDX-License-Identifier: Apache-2.0
// Vectors are arrays of three, quaternions x y z w, matrices 4x4 column by column as WebGL has them.

const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
const subtract = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const times = (factor, a) => [factor * a[0], factor * a[1], factor * a[2]];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const norm = (a) => Math.hypot(a[0], a[1], a[2]);
const cross = (a, b) => [
  a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0],
];
const between = (a, b, share) => a.map((value, i) => value + share * (b[i] - value));

function unit(a) {
  const length = Math.hypot(...a);
  return length > 0 ? a.map((value) => value / length) : a;
}

/** The quaternion of turning by q, then by p. */
function turned(p, q) {
  const [a, b, c, d] = p;
  const [x, y, z, w] = q;
  return [
    d * x + a * w + b * z - c * y, d * y - a * z + b * w + c * x,
    d * z + a * y - b * x + c * w, d * w - a * x - b * y - c * z,
  ];
}

function rotated(q, v) {
  const t = times(2, cross(q, v));
  return add(add(v, times(q[3], t)), cross(q, t));
}

/** Between two orientations, the short way round. */
function orientationBetween(p, q, share) {
  const sign = p[0] * q[0] + p[1] * q[1] + p[2] * q[2] + p[3] * q[3] < 0 ? -1 : 1;
  return unit(between(p, q.map((value) => sign * value), share));
}

/** Rotation that takes z to a direction. */
function alongZ(direction) {
  const [x, y, z] = unit(direction);
  return z < -0.999999 ? [1, 0, 0, 0] : unit([-y, x, 0, 1 + z]);
}

/** Stretches along the axes, rotates, and moves. */
function placed(position, q = [0, 0, 0, 1], size = [1, 1, 1]) {
  const columns = [[1, 0, 0], [0, 1, 0], [0, 0, 1]].map((axis, i) => times(size[i], rotated(q, axis)));
  return new Float32Array([...columns[0], 0, ...columns[1], 0, ...columns[2], 0, ...position, 1]);
}

function product(a, b) {
  const result = new Float32Array(16);
  for (let column = 0; column < 4; column++) {
    for (let row = 0; row < 4; row++) {
      let sum = 0;
      for (let k = 0; k < 4; k++) sum += a[4 * k + row] * b[4 * column + k];
      result[4 * column + row] = sum;
    }
  }
  return result;
}

function perspective(fieldOfView, aspect, near, far) {
  const f = 1 / Math.tan(fieldOfView / 2);
  const depth = near - far;
  return new Float32Array([
    f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) / depth, -1, 0, 0, 2 * far * near / depth, 0,
  ]);
}

function orthographic(half, near, far) {
  const depth = near - far;
  return new Float32Array([
    1 / half, 0, 0, 0, 0, 1 / half, 0, 0, 0, 0, 2 / depth, 0, 0, 0, (far + near) / depth, 1,
  ]);
}

/** From the world to the axes of an eye that looks at a point. */
function looking(eye, target) {
  const z = unit(subtract(eye, target));
  const x = unit(cross(Math.abs(z[2]) > 0.9999 ? [0, 1, 0] : [0, 0, 1], z));
  const y = cross(z, x);
  return new Float32Array([
    x[0], y[0], z[0], 0, x[1], y[1], z[1], 0, x[2], y[2], z[2], 0,
    -dot(x, eye), -dot(y, eye), -dot(z, eye), 1,
  ]);
}

/** A point in clip coordinates: x, y from -1 to 1, and the distance along the view. */
function projected(matrix, point) {
  const row = (i) => dot([matrix[i], matrix[4 + i], matrix[8 + i]], point) + matrix[12 + i];
  const depth = row(3);
  return [row(0) / depth, row(1) / depth, depth];
}

/** "#rrggbb" as three numbers from 0 to 1. */
const colourOf = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16) / 255);
