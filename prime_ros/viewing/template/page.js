// SPDX-License-Identifier: Apache-2.0
// Puts the page together: what is shown, the controls, and the clock.

const element = (id) => document.getElementById(id);
const SETTINGS = new URLSearchParams(location.hash.slice(1));
const store = JSON.parse(element("store").textContent);

function start() {
  const replay = new Replay(store, contentOf(element("content").textContent));
  const canvas = element("picture");
  const renderer = new Renderer(canvas);
  const drawing = new Drawing(replay, renderer);
  const boxes = [...document.querySelectorAll("[data-shows]")];
  const shows = Object.fromEntries(boxes.map((box) => [box.dataset.shows, box]));
  const clock = {time: 0, playing: false, speed: 1, last: 0};
  let waiting = false;
  let look = {};

  const home = {azimuth: number("azimuth", -0.85), elevation: number("elevation", 0.3),
    distance: number("distance", 4 * drawing.reach), offset: [0, 0, -0.1 * drawing.reach]};
  const focus = () => replay.at(clock.time).com;
  const camera = new Camera(canvas, home, focus, redraw);
  const timeline = new Timeline(element("timeline"), replay, seek);

  function redraw() {
    if (!waiting) {
      waiting = true;
      requestAnimationFrame(draw);
    }
  }

  function draw(now) {
    waiting = false;
    if (clock.playing) {
      clock.time += clock.speed * Math.min(Math.max((now - clock.last) / 1000, 0), 0.1);
      if (clock.time >= replay.duration) clock.time = 0;
      clock.last = now;
    }
    const state = replay.at(clock.time);
    if (shows.follow.checked) camera.centre = state.com;
    camera.project(canvas.width / canvas.height);
    const checked = Object.fromEntries(Object.entries(shows).map(([name, box]) => [name, box.checked]));
    renderer.draw(drawing.items(state, checked), camera, look);
    timeline.draw(clock.time, look.ink);
    write(state, checked);
    document.documentElement.dataset.drawn = "true";
    if (clock.playing) redraw();
  }

  /** Numbers and labels over the picture. */
  function write(state, checked) {
    element("time").textContent = `${clock.time.toFixed(2)} / ${replay.duration.toFixed(2)} s`;
    state.contacts.forEach((contact, i) => {
      const [dot, force, std, used] = ["dot", "force", "std", "used"].map((kind) => element(`${kind}-${i}`));
      dot.style.opacity = Math.max(contact.probability, 0.12);
      force.textContent = String(Math.round(contact.force[2]));
      std.textContent = `± ${contact.std[2].toFixed(1)}`;
      const [x, y] = store.contacts[i].friction;
      const share = Math.hypot(contact.force[0] / x, contact.force[1] / y) / Math.max(contact.force[2], 1e-6);
      used.style.width = `${contact.force[2] < FAINTEST ? 0 : 100 * Math.min(share, 1)}%`;
    });
    store.inertia.forEach((link, i) => {
      const label = element(`payload-${i}`);
      if (label) {
        const [x, y, depth] = projected(camera.matrix, drawing.payloadPlace(state, link));
        label.hidden = !checked.inertia || depth < 0;
        label.style.left = `${50 + 50 * x}%`;
        label.style.top = `${50 - 50 * y}%`;
      }
    });
  }

  function resize() {
    const density = Math.min(devicePixelRatio || 1, 2);
    canvas.width = Math.round(canvas.clientWidth * density);
    canvas.height = Math.round(canvas.clientHeight * density);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => colourOf(style.getPropertyValue(name).trim());
    look = {ground: store.ground, background: colour("--sky"), floor: colour("--floor"), line: colour("--line"),
      ink: style.getPropertyValue("--text").trim()};
    drawing.mark = colour("--text");
    timeline.resize(density);
    redraw();
  }

  function play(playing) {
    clock.playing = playing;
    clock.last = performance.now();
    element("play").textContent = playing ? "❚❚" : "►";
    element("play").setAttribute("aria-label", playing ? "Pause" : "Play");
    redraw();
  }

  function seek(time) {
    clock.time = Math.min(Math.max(time, 0), replay.duration);
    redraw();
  }

  element("play").addEventListener("click", () => play(!clock.playing));
  element("speed").addEventListener("change", (event) => { clock.speed = Number(event.target.value); });
  for (const [name, box] of Object.entries(shows)) {
    if (SETTINGS.has(name)) box.checked = SETTINGS.get(name) !== "0";
    box.addEventListener("change", () => {
      if (name === "follow") camera.recentre(box.checked ? focus() : [0, 0, 0]);
      redraw();
    });
  }
  document.addEventListener("keydown", (event) => {
    const inControl = event.target instanceof Element && event.target.matches("select, input, button");
    if ((inControl && event.key === " ") || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.shiftKey ? 1 : 0.02;
    const actions = {" ": () => play(!clock.playing), ArrowLeft: () => seek(clock.time - step),
      ArrowRight: () => seek(clock.time + step), Home: () => seek(0), End: () => seek(replay.duration)};
    if (actions[event.key]) {
      event.preventDefault();
      actions[event.key]();
    }
  });
  new ResizeObserver(resize).observe(document.body);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", resize);
  seek(number("t", 0));
  camera.centre = focus();
  camera.reset();
  if (!shows.follow.checked) camera.recentre([0, 0, 0]);
  resize();
  play(!SETTINGS.has("t") && !matchMedia("(prefers-reduced-motion: reduce)").matches);
  window.replay = {seek, play, camera, at: (time) => replay.at(time)};
}

/** A number of the address, such as #t=2.5. */
function number(name, otherwise) {
  const value = parseFloat(SETTINGS.get(name));
  return Number.isFinite(value) ? value : otherwise;
}

try {
  start();
} catch (error) {
  element("failure").hidden = false;
  element("failure").textContent = `The replay cannot be shown: ${error.message}`;
  console.error(error);
}
