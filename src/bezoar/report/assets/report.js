// Draws a report's curves from the data embedded in the page: no library, no network.
"use strict";

(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);

  /** Rules that are not shown, in all panels of the page. */
  const hidden = new Set();

  /** What to draw again when rules are hidden or the window changes. */
  const sections = [];

  const MARGIN = { top: 10, right: 14, bottom: 36, left: 72 };

  /** Curves with at most so many points have a marker at each. */
  const FEW = 12;
  const SVG = "http://www.w3.org/2000/svg";

  /** Matplotlib's markers as paths around the origin, about one unit to each side. */
  const MARKERS = {
    o: "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0z",
    s: "M-.9-.9h1.8v1.8h-1.8z",
    "^": "M0-1.1L1.05.8H-1.05z",
    v: "M0 1.1L1.05-.8H-1.05z",
    "<": "M-1.1 0L.8-1.05V1.05z",
    ">": "M1.1 0L-.8-1.05V1.05z",
    D: "M0-1.2L1.2 0L0 1.2L-1.2 0z",
    d: "M0-1.25L.75 0L0 1.25L-.75 0z",
    P: "M-.4-1.15h.8v.75h.75v.8h-.75v.75h-.8v-.75h-.75v-.8h.75z",
    X: "M0-.5L.6-1.1L1.1-.6L.5 0L1.1.6L.6 1.1L0 .5L-.6 1.1L-1.1.6L-.5 0L-1.1-.6L-.6-1.1z",
    h: "M0-1.15L1-.575V.575L0 1.15L-1 .575V-.575z",
    p: "M0-1.15L1.1-.35L.68.95H-.68L-1.1-.35z",
    ".": "M-.6 0a.6 .6 0 1 0 1.2 0a.6 .6 0 1 0-1.2 0z",
    ",": "M-.4-.4h.8v.8h-.8z",
    "|": "M-.3-1.2h.6v2.4h-.6z",
    "_": "M-1.2-.3h2.4v.6h-2.4z",
    "*": "M0-1.3L.32-.4L1.25-.4L.5.16L.78 1.05L0 .5L-.78 1.05L-.5.16L-1.25-.4L-.32-.4z",
  };

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  function drawn(tag, attributes = {}, text = "") {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = text;
    return made;
  }

  // Numbers and axes

  /** A number in few characters, a dash where it is not defined. */
  function number(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size === 0 || (size >= 1e-3 && size < 10)) return value.toFixed(4);
    if (size >= 10 && size < 1e4) return value.toFixed(2);
    const [digits, power] = value.toExponential(2).split("e");
    return `${digits}×10${raised(Number(power))}`;
  }

  /** A whole number as an exponent. */
  function raised(power) {
    return [...String(power)].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("");
  }

  /** Round numbers, about `count` of them, that cover `low … high`. */
  function roundTicks(low, high, count) {
    const rough = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 2.5, 5, 10].map((s) => s * power).find((s) => s >= rough * 0.999);
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) {
      ticks.push(Number((i * step).toPrecision(12)));
    }
    return ticks;
  }

  function powerTicks(low, high, count) {
    const first = Math.ceil(Math.log10(low) - 1e-9);
    const last = Math.floor(Math.log10(high) + 1e-9);
    const stride = Math.max(1, Math.ceil((last - first) / count));
    const ticks = [];
    for (let power = first; power <= last; power += stride) ticks.push(10 ** power);
    if (ticks.length >= 2) return ticks;
    return [first - 1, first]
      .flatMap((power) => [1, 2, 5].map((digit) => digit * 10 ** power))
      .filter((tick) => tick >= low && tick <= high);
  }

  function tickLabel(value, log) {
    const power = Math.round(Math.log10(Math.abs(value)));
    if (log && Math.abs(value / 10 ** power - 1) < 1e-6 && Math.abs(power) > 2) {
      return `10${raised(power)}`;
    }
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e6)) {
      const [digits, exponent] = value.toExponential().split("e");
      return `${digits}×10${raised(Number(exponent))}`;
    }
    return size >= 1e4 ? value.toLocaleString("en") : String(Number(value.toPrecision(6)));
  }

  /** Where values lie between two pixels. */
  function scale(low, high, from, to, log) {
    const place = log ? Math.log10 : (value) => value;
    const [start, end] = [place(low), place(high)];
    return (value) => from + ((place(value) - start) / (end - start)) * (to - from);
  }

  function isDrawable(value, log) {
    return value !== null && value !== undefined && (!log || value > 0);
  }

  // What is shown

  function visibleCurves(panel, metric) {
    return panel.curves
      .map((place) => data.curves[place])
      .filter((curve) => !hidden.has(curve.rule) && metric in curve.values);
  }

  /** The least and largest value of a metric in all panels of a section, with some air. */
  function limits(section, metric) {
    const { log } = data.metrics[metric];
    let [low, high] = [Infinity, -Infinity];
    for (const panel of section.panels) {
      for (const curve of visibleCurves(panel, metric)) {
        for (const values of [curve.values, curve.low, curve.high]) {
          for (const value of values?.[metric] ?? []) {
            if (!isDrawable(value, log)) continue;
            low = Math.min(low, value);
            high = Math.max(high, value);
          }
        }
      }
    }
    if (low > high) return log ? [0.1, 1] : [0, 1];
    if (log) return low === high ? [low / 3, high * 3] : [low / 1.3, high * 1.3];
    const air = (high - low) * 0.04 || Math.abs(high) * 0.1 || 1;
    return [low >= 0 && low - air < 0 ? 0 : low - air, high + air];
  }

  function linePath(curve, metric, x, y, log) {
    let path = "";
    let pen = "M";
    curve.values[metric].forEach((value, i) => {
      if (!isDrawable(value, log)) {
        pen = "M";
        return;
      }
      path += `${pen}${x(curve.x[i]).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = "L";
    });
    return path;
  }

  /** From the lowest seed to the highest. */
  function bandPath(curve, metric, x, y, log) {
    const [low, high] = [curve.low[metric], curve.high[metric]];
    const kept = curve.x.map((_, i) => i).filter((i) => isDrawable(low[i], log) && high[i] !== null);
    const point = (values) => (i) => `${x(curve.x[i]).toFixed(1)} ${y(values[i]).toFixed(1)}`;
    if (!kept.length) return "";
    return `M${kept.map(point(high)).join("L")}L${kept.reverse().map(point(low)).join("L")}z`;
  }

  function marker(rule, x, y, size, always = false) {
    const shape = MARKERS[data.rules[rule].marker] ?? (always ? MARKERS.o : null);
    if (!shape) return null;
    return drawn("path", {
      class: "marker",
      d: shape,
      transform: `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${size})`,
      style: `fill: var(--rule-${data.rules[rule].place})`,
    });
  }

  /** A short piece of a rule's line, for legends and tooltips. */
  function swatch(rule) {
    const { place, dash } = data.rules[rule];
    const svg = drawn("svg", { class: "swatch", viewBox: "0 0 28 12", "aria-hidden": "true" });
    svg.append(line(`M1 6H27`, place, dash));
    const dot = marker(rule, 14, 6, 4.2);
    if (dot) svg.append(dot);
    return svg;
  }

  function line(path, place, dash) {
    const style = `stroke: var(--rule-${place})`;
    return drawn("path", { class: "line", d: path, style, "stroke-dasharray": dash });
  }

  // A panel: a network's or partition's curves

  class Panel {
    constructor(section, { title, curves }) {
      Object.assign(this, { section, title, curves });
      this.iterations = [...new Set(curves.flatMap((place) => data.curves[place].x))];
      this.iterations.sort((a, b) => a - b);
      this.at = this.iterations.length - 1;
      this.svg = drawn("svg", { "aria-hidden": "true" });
      this.tip = element("div", { class: "tip", "aria-hidden": "true", hidden: "" });
      // To a screen reader a panel is a slider over iterations that speaks the curves' values.
      this.plot = element(
        "div",
        {
          class: "plot",
          role: "slider",
          tabindex: "0",
          "aria-label": `${title || "Curves"}: values at an iteration`,
          "aria-valuemin": this.iterations[0],
          "aria-valuemax": this.iterations[this.at],
        },
        this.svg,
        this.tip,
      );
      this.figure = element("figure", { class: "panel" }, this.plot);
      this.figure.prepend(element("figcaption", {}, element("bdi", {}, title)));
      this.listen();
    }

    listen() {
      const { plot } = this;
      const point = (event) => {
        const inside = event.clientX - plot.getBoundingClientRect().left;
        this.show(this.nearest(inside));
      };
      plot.addEventListener("pointermove", point);
      plot.addEventListener("pointerdown", point);
      plot.addEventListener("pointerleave", () => this.hide());
      plot.addEventListener("focus", () => this.show(this.at));
      plot.addEventListener("blur", () => this.hide());
      plot.addEventListener("keydown", (event) => {
        if (event.key === "Escape") return this.hide();
        const last = this.iterations.length - 1;
        const leap = Math.max(1, Math.round(last / 10));
        const target = {
          ArrowLeft: this.at - 1,
          ArrowDown: this.at - 1,
          ArrowRight: this.at + 1,
          ArrowUp: this.at + 1,
          PageDown: this.at - leap,
          PageUp: this.at + leap,
          Home: 0,
          End: last,
        }[event.key];
        if (target === undefined) return;
        event.preventDefault();
        this.show(Math.min(last, Math.max(0, target)));
      });
    }

    /** The place of the iteration nearest to a pixel. */
    nearest(pixel) {
      const distances = this.iterations.map((iteration) => Math.abs(this.x(iteration) - pixel));
      return distances.indexOf(Math.min(...distances));
    }

    draw() {
      const { metric } = this.section;
      const { log } = data.metrics[metric];
      const width = Math.max(200, this.plot.clientWidth);
      const height = Math.round(Math.min(300, Math.max(250, width * 0.62)));
      const [low, high] = this.section.limits;
      const [first, last] = this.span;
      const [left, right] = [MARGIN.left, width - MARGIN.right];
      const [bottom, top] = [height - MARGIN.bottom, MARGIN.top];
      this.x = scale(first, last === first ? first + 1 : last, left, right, false);
      this.y = scale(low, high, bottom, top, log);
      this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      this.svg.setAttribute("height", height);
      this.svg.replaceChildren();
      this.drawAxes(low, high, [first, last], { left, right, top, bottom }, log);
      this.drawCurves(metric, log);
      this.cross = drawn("g", { class: "cross" });
      this.svg.append(this.cross);
      this.describe();
      if (!this.tip.hidden) this.show(this.at);
    }

    drawAxes(low, high, [first, last], { left, right, top, bottom }, log) {
      const ticks = log ? powerTicks(low, high, 6) : roundTicks(low, high, 5);
      for (const tick of ticks) {
        const y = this.y(tick);
        this.svg.append(drawn("path", { class: "grid", d: `M${left} ${y}H${right}` }));
        this.svg.append(
          drawn("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, tickLabel(tick, log)),
        );
      }
      this.svg.append(drawn("path", { class: "axis", d: `M${left} ${bottom}H${right}` }));
      const room = Math.max(2, Math.floor((right - left) / 70));
      for (const tick of last > first ? roundTicks(first, last, room) : [first]) {
        const x = this.x(tick);
        this.svg.append(drawn("path", { class: "axis", d: `M${x} ${bottom}v5` }));
        this.svg.append(
          drawn("text", { x, y: bottom + 18, "text-anchor": "middle" }, tickLabel(tick, false)),
        );
      }
      const middle = (left + right) / 2;
      const centre = (top + bottom) / 2;
      this.svg.append(
        drawn(
          "text",
          { class: "y", transform: `translate(13 ${centre}) rotate(-90)`, "text-anchor": "middle" },
          data.metrics[this.section.metric].title,
        ),
      );
      this.svg.append(
        drawn("text", { x: middle, y: bottom + 33, "text-anchor": "middle" }, "iteration"),
      );
    }

    drawCurves(metric, log) {
      const curves = visibleCurves(this, metric);
      for (const curve of curves.filter((one) => one.low)) {
        const style = `fill: var(--rule-${data.rules[curve.rule].place})`;
        const path = bandPath(curve, metric, this.x, this.y, log);
        this.svg.append(drawn("path", { class: "band", d: path, style, "data-rule": curve.rule }));
      }
      curves.forEach((curve, order) => {
        const { place, dash } = data.rules[curve.rule];
        const path = linePath(curve, metric, this.x, this.y, log);
        const group = drawn("g", { class: "curve", "data-rule": curve.rule });
        group.append(line(path, place, dash));
        // Of curves that lie on each other the lower ones are wider.
        group.firstChild.style.strokeWidth = 3.2 - (1.6 * order) / Math.max(1, curves.length - 1);
        // Markers of curves that lie on each other are set apart.
        const points = curve.x.length;
        const few = points <= FEW;
        const apart = Math.max(1, Math.floor(points / 6), Math.min(curves.length, points));
        const spacing = few ? 1 : apart;
        const start = few ? 0 : Math.floor((order * spacing) / curves.length);
        for (let i = start; i < points; i += spacing) {
          const value = curve.values[metric][i];
          if (!isDrawable(value, log)) continue;
          const dot = marker(curve.rule, this.x(curve.x[i]), this.y(value), few ? 3.4 : 4, few);
          if (dot) group.append(dot);
        }
        this.svg.append(group);
      });
    }

    /** The visible curves' values nearest to an iteration, the largest first. */
    readings(iteration) {
      const { metric } = this.section;
      const found = visibleCurves(this, metric).map((curve) => {
        const apart = curve.x.map((x) => Math.abs(x - iteration));
        const i = apart.indexOf(Math.min(...apart));
        const value = curve.values[metric][i];
        let text = number(value);
        if (curve.low && value !== null) {
          text += ` (${number(curve.low[metric][i])}…${number(curve.high[metric][i])})`;
        }
        return { rule: curve.rule, label: data.rules[curve.rule].label, value, text };
      });
      return found.sort((a, b) => (b.value ?? -Infinity) - (a.value ?? -Infinity));
    }

    describe() {
      const iteration = this.iterations[this.at];
      const readings = this.readings(iteration);
      const spoken = readings.map(({ label, text }) => `${label} ${text}`).join(", ");
      this.plot.setAttribute("aria-valuenow", iteration);
      this.plot.setAttribute(
        "aria-valuetext",
        `iteration ${iteration}: ${spoken || "no curves shown"}`,
      );
      return readings;
    }

    show(at) {
      this.at = at;
      const { log } = data.metrics[this.section.metric];
      const iteration = this.iterations[at];
      const readings = this.describe();
      const x = this.x(iteration);
      const bottom = this.y(this.section.limits[0]);
      this.cross.replaceChildren(drawn("path", { d: `M${x} ${MARGIN.top}V${bottom}` }));
      for (const { rule, value } of readings) {
        if (!isDrawable(value, log)) continue;
        const style = `fill: var(--rule-${data.rules[rule].place})`;
        this.cross.append(drawn("circle", { cx: x, cy: this.y(value), r: 4, style }));
      }
      const rows = readings.map(({ rule, label, text }) =>
        element(
          "div",
          { "data-rule": rule },
          swatch(rule),
          element("bdi", {}, label),
          element("span", { class: "value" }, text),
        ),
      );
      this.tip.replaceChildren(element("strong", {}, `iteration ${iteration}`), ...rows);
      this.tip.hidden = false;
      this.placeTip(x);
    }

    /** Beside the cross, over other panels if need be; below where that is too narrow. */
    placeTip(x) {
      const plot = this.plot.getBoundingClientRect();
      const all = this.section.grid.getBoundingClientRect();
      const [least, most] = [all.left - plot.left, all.right - plot.left - this.tip.offsetWidth];
      const places = [x + 14, x - 14 - this.tip.offsetWidth];
      const beside = places.find((place) => place >= least && place <= most);
      const below = Math.max(least, Math.min(most, x - this.tip.offsetWidth / 2));
      this.tip.style.left = `${beside ?? below}px`;
      this.tip.style.top = beside === undefined ? `${this.plot.clientHeight}px` : "4px";
    }

    hide() {
      this.tip.hidden = true;
      this.cross.replaceChildren();
    }
  }

  // A section: a figure's panels with one legend and one choice of metric

  class Section {
    constructor(root, { metric, metrics, panels }) {
      this.metric = metric;
      this.tables = [...document.querySelectorAll("[data-metric]")].filter(
        (table) => table.dataset.of === root.id,
      );
      this.panels = panels.map((panel) => new Panel(this, panel));
      // Panels have one scale of iterations, unless some would then be too narrow to read.
      const ends = this.panels.map((panel) => panel.iterations.at(-1));
      const shared = Math.max(...ends) <= 4 * Math.min(...ends);
      for (const panel of this.panels) {
        const { iterations } = panel;
        panel.span = shared
          ? [Math.min(...this.panels.map((one) => one.iterations[0])), Math.max(...ends)]
          : [iterations[0], iterations.at(-1)];
      }
      this.about = element("p", { class: "about", id: `${root.id}-about` });
      this.legend = element("div", {
        class: "legend",
        role: "group",
        "aria-label": "Rules; press one to hide or show it in all panels",
      });
      this.grid = element("div", { class: "panels" }, ...this.panels.map((one) => one.figure));
      root.replaceChildren(this.chooser(root.id, metrics), this.about, this.legend, this.grid);
      this.fillLegend();
      let width = 0;
      new ResizeObserver(() => {
        if (root.clientWidth !== width) {
          width = root.clientWidth;
          this.draw();
        }
      }).observe(root);
    }

    chooser(id, metrics) {
      const options = metrics.map((name) =>
        element("option", { value: name }, data.metrics[name].title),
      );
      const select = element("select", { id: `${id}-metric` }, ...options);
      select.value = this.metric;
      select.addEventListener("change", () => {
        this.metric = select.value;
        this.draw();
      });
      const label = element("label", { for: select.id }, "Metric");
      return element("div", { class: "chooser" }, label, select);
    }

    fillLegend() {
      const used = this.panels.flatMap((panel) => panel.curves);
      const rules = Object.keys(data.rules).filter((rule) =>
        used.some((place) => data.curves[place].rule === rule),
      );
      this.buttons = rules.map((rule) => {
        const button = element(
          "button",
          { type: "button", "data-rule": rule },
          swatch(rule),
          element("bdi", {}, data.rules[rule].label),
        );
        if (data.rules[rule].typed) button.append(element("code", {}, data.rules[rule].typed));
        button.addEventListener("click", () => {
          if (!hidden.delete(rule)) hidden.add(rule);
          sections.forEach((section) => section.draw());
        });
        return button;
      });
      this.all = element("button", { type: "button", class: "all" }, "Show all");
      this.all.addEventListener("click", () => {
        hidden.clear();
        sections.forEach((section) => section.draw());
        this.buttons[0].focus();
      });
      this.legend.append(...this.buttons, this.all);
    }

    draw() {
      const { about, log } = data.metrics[this.metric];
      this.about.textContent = log ? `${about}; logarithmic axis` : about;
      for (const button of this.buttons) {
        button.setAttribute("aria-pressed", String(!hidden.has(button.dataset.rule)));
      }
      this.all.hidden = hidden.size === 0;
      this.limits = limits(this, this.metric);
      this.panels.forEach((panel) => panel.draw());
      const known = this.tables.some((table) => table.dataset.metric === this.metric);
      for (const table of known ? this.tables : []) {
        table.hidden = table.dataset.metric !== this.metric;
      }
    }
  }

  function copyButton(code) {
    const button = element("button", { type: "button", class: "copy" }, "Copy");
    const said = element("span", { class: "said", role: "status" });
    button.addEventListener("click", async () => {
      const range = document.createRange();
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      let copied = true;
      try {
        await navigator.clipboard.writeText(code.textContent);
      } catch {
        copied = document.execCommand("copy"); // where pages on disk have no clipboard
      }
      said.textContent = copied ? "Copied" : "Selected: press Ctrl+C";
      setTimeout(() => (said.textContent = ""), 2500);
    });
    code.parentElement.before(element("div", { class: "copying" }, said, button));
  }

  for (const section of data.sections) {
    sections.push(new Section(document.getElementById(section.id), section));
  }
  document.querySelectorAll("pre > code").forEach(copyButton);
})();
