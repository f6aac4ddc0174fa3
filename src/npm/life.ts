// Whether this page is frozen; nothing but a page ever is.

/** Frozen pages still hear messages and are granted locks, so whoever begins something then must ask first. */
class Life {
  isFrozen = false;
  #followed = false;
  #thawed: Promise<void> | undefined;
  #thaw = (): void => {};

  /** Listens from the first use on. */
  follow(): void {
    // Some servers have a document, too, which nobody freezes and which hears nothing.
    if (this.#followed || typeof document === "undefined" || typeof document.addEventListener !== "function") return;
    this.#followed = true;
    document.addEventListener("freeze", () => {
      this.isFrozen = true;
      this.#thawed ??= new Promise((resolve) => (this.#thaw = resolve));
    });
    document.addEventListener("resume", () => {
      this.isFrozen = false;
      this.#thawed = undefined;
      this.#thaw();
    });
  }

  /** Comes when the page is no longer frozen; undefined if it is not. */
  thawed(): Promise<void> | undefined {
    return this.#thawed;
  }
}

export const life = new Life();
