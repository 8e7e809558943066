// Search runs in a worker, which browsers refuse to pages that are opened as files. There, a hidden frame does the work.
(() => {
  if (location.protocol !== "file:") return;

  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.address = new URL(url, location.href).href;
      this.onmessage = null;
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inner = frame.contentWindow;
      const inside = this.inner.document;
      inside.open();
      inside.write("<!doctype html><title>worker</title>");
      inside.close();
      this.inner.postMessage = (data) => this.receive(data);
      this.inner.importScripts = (...urls) => Promise.all(urls.map((own) => this.load(own)));
      this.ready = this.load(this.address);
    }

    load(url) {
      return new Promise((done, failed) => {
        const script = this.inner.document.createElement("script");
        script.src = new URL(url, this.address);
        script.onload = done;
        script.onerror = () => failed(new Error(`cannot load ${url}`));
        this.inner.document.head.append(script);
      });
    }

    receive(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data })));
    }

    terminate() {
      this.inner.frameElement.remove();
    }
  }

  window.IFrameWorker = IFrameWorker;
  window.Worker = IFrameWorker;
})();
