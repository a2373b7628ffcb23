// The bar of a recorded trace: play, stop, speed, and the moment that is shown.

import { post } from "./server.js";
import { element, moment, seconds } from "./text.js";

const SPEEDS = [0.1, 1, 2, 5, 10, 30, 60, 300, 1000];

export class ReplayBar {
  constructor(place) {
    this.place = place;
    this.button = element("button", { type: "button", class: "main", title: "Play or stop (space)", onclick: () => this.toggle() }, "Play");
    this.slider = element("input", { type: "range", min: 0, max: 1000, value: 0, "aria-label": "Moment of the trace",
      oninput: () => this.goTo() });
    this.time = element("span", { class: "mono" });
    this.speed = element("select", { "aria-label": "Speed", onchange: () => this.ask({ speed: Number(this.speed.value) }) });
    this.name = element("b");
    place.append(this.button, this.slider, this.time, element("label", {}, "Speed ", this.speed), this.name);
  }

  show(state) {
    this.state = state;
    this.place.hidden = !state;
    if (!state) return;
    const { start_s, end_s, at_s, speed, is_playing, trace } = state;
    this.button.textContent = is_playing ? "Stop" : "Play";
    if (!this.isAsking) this.slider.value = (1000 * (at_s - start_s)) / Math.max(1e-9, end_s - start_s);
    this.time.textContent = `${moment(at_s)} · ${seconds(at_s - start_s)} of ${seconds(end_s - start_s)}`;
    const speeds = [...new Set([...SPEEDS, speed])].sort((a, b) => a - b);
    if (this.speeds !== String(speeds)) {
      this.speeds = String(speeds);
      this.speed.replaceChildren(...speeds.map((each) => element("option", { value: each }, `× ${each}`)));
    }
    this.speed.value = speed;
    this.name.textContent = `Recorded trace ${trace.split("/").slice(-2).join("/")}`;
    this.name.title = trace;
  }

  toggle() {
    if (!this.state) return false;
    this.ask({ is_playing: !this.state.is_playing });
    return true;
  }

  // While the last question is not answered, only the latest wish is kept.
  async goTo() {
    const { start_s, end_s } = this.state;
    this.wish = start_s + ((end_s - start_s) * this.slider.value) / 1000;
    if (this.isAsking) return;
    this.isAsking = true;
    while (this.wish !== null) {
      const at_s = this.wish;
      this.wish = null;
      await this.ask({ at_s });
    }
    this.isAsking = false;
  }

  async ask(request) {
    try {
      await post("/api/replay", request);
    } catch (error) {
      this.time.textContent = error.message;
    }
  }
}
