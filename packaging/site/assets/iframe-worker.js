// The search of the site without a web server. Browsers start no worker from a file, so its script runs in a hidden frame.
// The theme's plugin "offline" would load a script for this from elsewhere; it doesn't if one of this file's name is there.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.scope = frame.contentWindow;
      this.scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      frame.contentDocument.open(); // it also removes the listeners that the frame has
      this.isLoaded = new Promise((resolve) => this.scope.addEventListener("load", resolve, { once: true }));
      frame.contentDocument.write(`<script src="${url}"></script>`);
      frame.contentDocument.close();
    }

    postMessage(data) {
      this.isLoaded.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
