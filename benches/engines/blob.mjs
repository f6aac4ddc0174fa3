// The store of engines without their own: one JSON text per session, read before a call and written after it.

export class Blobs {
  #texts = new Map();
  #bytes = 0;

  load(id) {
    const text = this.#texts.get(id);
    return text === undefined ? [] : JSON.parse(text);
  }

  save(id, messages) {
    const text = JSON.stringify(messages);
    this.#bytes += text.length;
    this.#texts.set(id, text);
  }

  /** The bytes written since the last request of this number. */
  bytes() {
    const bytes = this.#bytes;
    this.#bytes = 0;
    return bytes;
  }
}

/** The same in a page's IndexedDB: one record per session. */
export class IndexedDbBlobs {
  static async open(name) {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => request.result.createObjectStore("texts");
    return new IndexedDbBlobs(await settled(request));
  }

  #database;

  constructor(database) {
    this.#database = database;
  }

  async load(id) {
    const text = await settled(this.#database.transaction("texts").objectStore("texts").get(id));
    return text === undefined ? [] : JSON.parse(text);
  }

  save(id, messages) {
    const transaction = this.#database.transaction("texts", "readwrite");
    transaction.objectStore("texts").put(JSON.stringify(messages), id);
    return new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onerror = () => reject(transaction.error);
    });
  }

  bytes() {
    return 0;
  }
}

function settled(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}
