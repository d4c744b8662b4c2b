// SPDX-License-Identifier: Apache-2.0
// Fills the plots that show one joint or one sensor at a time, and brings back every knot when one zooms in.
"use strict";
(function () {
  const PALETTE = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a6f00", "#8a5a44"];
  const SHOWN = 2000;
  const store = JSON.parse(document.getElementById("store").textContent);

  function find(plots, name) {
    return plots.get_model_by_name("page:" + name);
  }

  function bytes(text) {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
  }

  const INTEGERS = { 8: Uint8Array, 16: Uint16Array, 32: Uint32Array };

  function timesOfRows(entry) {
    let row = 0;
    return Float32Array.from(new INTEGERS[entry.bits](bytes(entry.rows)), (step) => (row += step) * store.dt);
  }

  function unpacked(entry) {
    if ("exact" in entry) return new Float32Array(bytes(entry.exact));
    if ("rows" in entry) return timesOfRows(entry);
    const codes = new INTEGERS[entry.bits](bytes(entry.data));
    return Float32Array.from(codes, (code) => (code === 0 ? NaN : entry.low + (code - 1) * entry.step));
  }

  function setRange(range, arrays) {
    let low = Infinity;
    let high = -Infinity;
    for (const array of arrays) {
      for (const number of array) {
        if (number < low) low = number;
        if (number > high) high = number;
      }
    }
    if (low > high) return;
    const margin = 0.06 * (high - low) || Math.abs(high) * 0.1 || 1;
    range.start = low - margin;
    range.end = high + margin;
    range.reset_start = range.start;
    range.reset_end = range.end;
  }

  function regular(count) {
    return Float32Array.from({ length: count }, (_, index) => index * store.dt);
  }

  // Columns that are shown over time, by plot, every knot that the page has; the plots get a part of them.
  const series = {};

  function unpackedColumns(packed) {
    const columns = {};
    for (const [name, entry] of Object.entries(packed)) columns[name] = unpacked(entry);
    columns.time ??= regular(Object.values(columns)[0].length);
    return columns;
  }

  function showJoint(plots, index) {
    for (const [plot, joints] of Object.entries(store.joints)) {
      series[plot] = unpackedColumns(joints[index]);
      setRange(find(plots, plot + "_range"), [series[plot].value]);
    }
    refine(plots, Object.keys(store.joints));
  }

  function cloud(entry, channels) {
    const channel = Array.from(unpacked(entry.channel), Math.round);
    return {
      time: unpacked(entry.time),
      value: unpacked(entry.value),
      channel: channel.map((index) => channels[index]),
      colour: channel.map((index) => PALETTE[index % PALETTE.length]),
    };
  }

  function showSensor(plots, name) {
    const sensor = store.residuals[name];
    const used = cloud(sensor.used, sensor.channels);
    const rejected = cloud(sensor.rejected, sensor.channels);
    find(plots, "used").data = used;
    find(plots, "rejected").data = rejected;
    setRange(find(plots, "residual_range"), [[-4, 4], used.value, rejected.value]);
    const histogram = find(plots, "histogram");
    histogram.data = { ...histogram.data, density: sensor.density };
    const lags = sensor.autocorrelation.length - 1;
    find(plots, "autocorrelation").data = {
      lag: sensor.autocorrelation.slice(1).map((_, index) => index + 1),
      value: sensor.autocorrelation.slice(1).map((number) => (number === null ? NaN : number)),
    };
    const range = find(plots, "lag_range");
    range.start = 0;
    range.end = lags + 1;
    const white = find(plots, "white_band");
    white.bottom = -sensor.bound;
    white.top = sensor.bound;
    showChannels(sensor.channels);
  }

  function showChannels(channels) {
    const place = document.getElementById("channels");
    place.textContent = "";
    if (channels.length > PALETTE.length) return;
    channels.forEach((name, index) => {
      const mark = document.createElement("span");
      mark.textContent = "● ";
      mark.style.color = PALETTE[index];
      place.append(mark, name + "  ");
    });
  }

  // Rows from first to last: all, or of equal pieces those with the smallest and the largest of each column.
  function extremes(columns, first, last) {
    const count = last - first + 1;
    if (count <= SHOWN) return Array.from({ length: count }, (_, index) => first + index);
    const size = Math.ceil((count * 2 * columns.length) / SHOWN);
    const kept = [];
    for (let start = first; start <= last; start += size) {
      const found = new Set();
      for (const column of columns) {
        let low = start;
        let high = start;
        for (let row = start; row < Math.min(start + size, last + 1); row++) {
          if (column[row] < column[low] || Number.isNaN(column[low])) low = row;
          if (column[row] > column[high] || Number.isNaN(column[high])) high = row;
        }
        found.add(low).add(high);
      }
      kept.push(...[...found].sort((one, other) => one - other));
    }
    return kept;
  }

  // First index of increasing times that is not before a time.
  function indexOf(times, time) {
    let low = 0;
    let high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // Shows the part of the series that the range of time covers.
  function refine(plots, names) {
    const range = find(plots, "time");
    for (const name of names) {
      const columns = series[name];
      const drawn = Object.keys(columns).filter((column) => column + "_std" in columns);
      const first = Math.max(indexOf(columns.time, range.start) - 1, 0);
      const last = Math.min(indexOf(columns.time, range.end), columns.time.length - 1);
      const rows = extremes(drawn.map((column) => columns[column]), first, last);
      const data = {};
      for (const [column, values] of Object.entries(columns)) {
        data[column] = Float32Array.from(rows, (row) => values[row]);
      }
      for (const column of drawn) {
        const std = data[column + "_std"];
        data[column + "_low"] = data[column].map((value, index) => value - 2 * std[index]);
        data[column + "_high"] = data[column].map((value, index) => value + 2 * std[index]);
      }
      find(plots, name).data = data;
    }
  }

  function followZoom(plots) {
    let waiting = null;
    find(plots, "time").change.connect(() => {
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        for (const [name, packed] of Object.entries(store.plots)) series[name] ??= unpackedColumns(packed);
        refine(plots, Object.keys(series));
      }, 60);
    });
  }

  function onChange(id, handle) {
    const control = document.getElementById(id);
    if (!control) return null;
    control.addEventListener("change", () => handle(control));
    return control;
  }

  // A finger on a plot scrolls the page; in the overview, sideways, it moves the window and its edges.
  function leaveTouchToPage(plots) {
    if (!window.matchMedia("(pointer: coarse)").matches) return;
    for (const plot of plots.roots()) {
      if (plot.name === "page:overview") {
        const view = Bokeh.index.get_by_id(plot.id);
        if (view?.canvas_view?.events_el) view.canvas_view.events_el.style.touchAction = "pan-y";
      } else {
        for (const tool of plot.toolbar.tools) if (tool.active === true) tool.active = false;
      }
    }
  }

  function start(plots) {
    leaveTouchToPage(plots);
    onChange("tangential", (box) => {
      for (let index = 0; ; index++) {
        const curve = find(plots, "tangential_" + index);
        if (!curve) return;
        curve.visible = box.checked;
      }
    });
    const joint = onChange("joint", (choice) => showJoint(plots, Number(choice.value)));
    if (joint) showJoint(plots, Number(joint.value));
    const sensor = onChange("sensor", (choice) => showSensor(plots, choice.value));
    if (sensor) showSensor(plots, sensor.value);
    followZoom(plots);
    document.documentElement.dataset.ready = "yes";
  }

  function whenDrawn() {
    const plots = window.Bokeh && Bokeh.documents[0];
    if (plots) start(plots);
    else setTimeout(whenDrawn, 20);
  }
  whenDrawn();
})();
