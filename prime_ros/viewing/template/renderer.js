// SPDX-License-Identifier: Apache-2.0
// Draws lists of items with WebGL 2: light, one shadow, a ground with a grid, and what is see-through last.
//
// An item is {mesh, matrix, colour: [r, g, b]} and, if wanted, alpha (1), glow (0: lit, 1: plain colour),
// casts (a shadow), showsThrough (faintly seen where something hides it), skin (drawn last of what is solid, as
// one surface).

const SHADOW_SIZE = 2048;
const GROUND_SIZE = 60; // [m]
const FIELD_OF_VIEW = 0.7; // [rad]
const SUN = unit([0.45, -0.35, 1]);

const VERTEX = `#version 300 es
  layout(location = 0) in vec3 position;
  layout(location = 1) in vec3 normal;
  uniform mat4 model, camera, light;
  out vec3 at, facing;
  out vec4 inLight;
  void main() {
    vec4 world = model * vec4(position, 1.0);
    at = world.xyz;
    facing = transpose(inverse(mat3(model))) * normal;
    inLight = light * vec4(at + 0.004 * normalize(facing), 1.0);
    gl_Position = camera * world;
  }`;

const COMMON = `#version 300 es
  precision highp float;
  precision highp sampler2DShadow;
  uniform sampler2DShadow shadow;
  uniform vec3 eye, sun, background;
  in vec3 at, facing;
  in vec4 inLight;
  out vec4 colour;
  float sunlight() {
    vec3 place = 0.5 * inLight.xyz + 0.5;
    if (any(lessThan(place, vec3(0.0))) || any(greaterThan(place, vec3(1.0)))) return 1.0;
    float sum = 0.0;
    for (int x = -1; x <= 1; x++)
      for (int y = -1; y <= 1; y++)
        sum += texture(shadow, place + vec3(vec2(x, y) * ${(1.2 / SHADOW_SIZE).toFixed(6)}, -0.0012));
    return sum / 9.0;
  }`;

const SURFACE = `${COMMON}
  uniform vec4 paint;
  uniform float glow;
  void main() {
    vec3 toEye = normalize(eye - at);
    vec3 n = normalize(facing);
    if (dot(n, toEye) < 0.0) n = -n;
    vec3 base = pow(paint.rgb, vec3(2.2));
    float lit = sunlight();
    float direct = max(dot(n, sun), 0.0) * lit;
    float sky = 0.30 + 0.26 * n.z;
    float shine = pow(max(dot(n, normalize(sun + toEye)), 0.0), 48.0) * lit;
    float rim = pow(1.0 - max(dot(n, toEye), 0.0), 3.0);
    vec3 shaded = base * (sky + 0.72 * direct) + 0.14 * shine + 0.05 * rim;
    colour = vec4(pow(mix(shaded, base, glow), vec3(1.0 / 2.2)), paint.a);
  }`;

const GROUND = `${COMMON}
  uniform vec3 centre, floorColour, lineColour;
  float lines(float spacing) {
    vec2 place = at.xy / spacing;
    vec2 width = fwidth(place);
    vec2 away = abs(fract(place - 0.5) - 0.5) / width;
    vec2 line = (1.0 - min(away / 1.2, 1.0)) * (1.0 - smoothstep(0.15, 0.5, width));
    return max(line.x, line.y);
  }
  void main() {
    float far = smoothstep(0.06, 1.0, length(at.xy - centre.xy) / 9.0);
    float line = max(0.35 * lines(0.1), lines(0.5));
    vec3 plain = mix(floorColour, lineColour, line * 0.7) * mix(0.66, 1.0, sunlight());
    colour = vec4(mix(plain, background, far), 1.0);
  }`;

const DEPTH = `#version 300 es
  precision mediump float;
  void main() {}`;

class Renderer {
  constructor(canvas) {
    const gl = canvas.getContext("webgl2", {antialias: true, alpha: false, powerPreference: "low-power"});
    if (!gl) throw new Error("this browser has no WebGL 2");
    this.gl = gl;
    this.canvas = canvas;
    this.surface = this.program(VERTEX, SURFACE);
    this.ground = this.program(VERTEX, GROUND);
    this.depth = this.program(VERTEX, DEPTH);
    this.plane = this.mesh(new Float32Array([
      -1, -1, 0, 0, 0, 1, 1, -1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1,
      -1, -1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, -1, 1, 0, 0, 0, 1,
    ]));
    this.makeShadow();
    gl.enable(gl.DEPTH_TEST);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
  }

  /** Give the triangles of `corners` to the graphics card. */
  mesh(data) {
    const gl = this.gl;
    const array = gl.createVertexArray();
    gl.bindVertexArray(array);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
    for (const [place, offset] of [[0, 0], [1, 12]]) {
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, 3, gl.FLOAT, false, 24, offset);
    }
    return {array, count: data.length / 6};
  }

  /** Draw a picture; the look holds the colours of the surroundings and the height of the ground. */
  draw(items, camera, look) {
    const gl = this.gl;
    const reach = Math.max(1.2, 0.8 * camera.distance); // of the shadow around the target [m]
    const from = add(camera.target, times(3 * reach, SUN));
    const light = product(orthographic(reach, 0.1, 6 * reach), looking(from, camera.target));
    this.drawShadow(items.filter((item) => item.casts), light);

    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(...look.background, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    const shared = {camera: camera.matrix, light, eye: camera.eye, sun: SUN, background: look.background};
    this.use(this.ground, {...shared, centre: camera.target, floorColour: look.floor, lineColour: look.line});
    this.one({mesh: this.plane, matrix: placed([camera.target[0], camera.target[1], look.ground], undefined,
      [GROUND_SIZE, GROUND_SIZE, 1])}, this.ground);

    this.use(this.surface, shared);
    const skin = items.filter((item) => item.skin);
    const others = items.filter((item) => !item.skin);
    const clear = others.filter((item) => item.alpha < 1);
    for (const item of others) if (!(item.alpha < 1)) this.one(item);
    this.drawSkin(skin);
    this.drawHidden(others.filter((item) => item.showsThrough));
    this.drawClear(clear, camera.eye);
  }

  drawShadow(items, light) {
    const gl = this.gl;
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.shadowBuffer);
    gl.viewport(0, 0, SHADOW_SIZE, SHADOW_SIZE);
    gl.clear(gl.DEPTH_BUFFER_BIT);
    gl.useProgram(this.depth.program);
    gl.uniformMatrix4fv(this.depth.places.camera, false, light);
    for (const item of items) this.one(item, this.depth);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  /** A see-through skin is one surface: only what is nearest to the eye is drawn. */
  drawSkin(items) {
    const gl = this.gl;
    const clear = items.some((item) => item.alpha < 1);
    if (clear) {
      gl.colorMask(false, false, false, false);
      for (const item of items) this.one(item);
      gl.colorMask(true, true, true, true);
      gl.enable(gl.BLEND);
      gl.depthFunc(gl.EQUAL);
    }
    for (const item of items) this.one(item);
    gl.depthFunc(gl.LESS);
    gl.disable(gl.BLEND);
  }

  /** Faintly, what lies behind something. */
  drawHidden(items) {
    const gl = this.gl;
    gl.enable(gl.BLEND);
    gl.depthFunc(gl.GREATER);
    gl.depthMask(false);
    for (const item of items) this.one({...item, alpha: 0.38 * (item.alpha ?? 1), glow: 0.7});
    gl.depthMask(true);
    gl.depthFunc(gl.LESS);
    gl.disable(gl.BLEND);
  }

  /** From the farthest to the nearest, of each the far side first. */
  drawClear(items, eye) {
    const gl = this.gl;
    const away = (item) => norm(subtract([item.matrix[12], item.matrix[13], item.matrix[14]], eye));
    gl.enable(gl.BLEND);
    gl.enable(gl.CULL_FACE);
    gl.depthMask(false);
    for (const item of [...items].sort((a, b) => away(b) - away(a))) {
      for (const side of [gl.FRONT, gl.BACK]) {
        gl.cullFace(side);
        this.one(item);
      }
    }
    gl.depthMask(true);
    gl.disable(gl.CULL_FACE);
    gl.disable(gl.BLEND);
  }

  one(item, program = this.surface) {
    const gl = this.gl;
    gl.uniformMatrix4fv(program.places.model, false, item.matrix);
    if (program === this.surface) {
      gl.uniform4f(program.places.paint, ...item.colour, item.alpha ?? 1);
      gl.uniform1f(program.places.glow, item.glow ?? 0);
    }
    gl.bindVertexArray(item.mesh.array);
    gl.drawArrays(gl.TRIANGLES, 0, item.mesh.count);
  }

  use(program, values) {
    const gl = this.gl;
    gl.useProgram(program.program);
    for (const [name, value] of Object.entries(values)) {
      if (value.length === 16) gl.uniformMatrix4fv(program.places[name], false, value);
      else gl.uniform3f(program.places[name], ...value);
    }
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, this.shadowTexture);
    gl.uniform1i(program.places.shadow, 0);
  }

  makeShadow() {
    const gl = this.gl;
    this.shadowTexture = gl.createTexture();
    gl.bindTexture(gl.TEXTURE_2D, this.shadowTexture);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.DEPTH_COMPONENT24, SHADOW_SIZE, SHADOW_SIZE);
    for (const [name, value] of [
      [gl.TEXTURE_COMPARE_MODE, gl.COMPARE_REF_TO_TEXTURE], [gl.TEXTURE_COMPARE_FUNC, gl.LEQUAL],
      [gl.TEXTURE_MIN_FILTER, gl.LINEAR], [gl.TEXTURE_MAG_FILTER, gl.LINEAR],
      [gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE], [gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE],
    ]) gl.texParameteri(gl.TEXTURE_2D, name, value);
    this.shadowBuffer = gl.createFramebuffer();
    gl.bindFramebuffer(gl.FRAMEBUFFER, this.shadowBuffer);
    gl.framebufferTexture2D(gl.FRAMEBUFFER, gl.DEPTH_ATTACHMENT, gl.TEXTURE_2D, this.shadowTexture, 0);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
  }

  program(vertex, fragment) {
    const gl = this.gl;
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    const places = {};
    for (let i = 0; i < gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS); i++) {
      const {name} = gl.getActiveUniform(program, i);
      places[name] = gl.getUniformLocation(program, name);
    }
    return {program, places};
  }
}
