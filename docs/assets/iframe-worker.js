// Search where the site is opened as files: browsers refuse workers there, so the script of a worker runs in a hidden frame.
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.body.appendChild(document.createElement("iframe"));
      frame.hidden = true;
      const inside = this.inside = frame.contentWindow;
      const worker = new URL(url, location.href).href;
      const load = script => new Promise((done, failed) => {
        const element = inside.document.createElement("script");
        Object.assign(element, { src: new URL(script, worker).href, onload: done, onerror: failed });
        inside.document.head.append(element);
      });
      inside.importScripts = (...scripts) => scripts.reduce((before, script) => before.then(() => load(script)), Promise.resolve());
      inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = load(worker);
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {}
  };
}
