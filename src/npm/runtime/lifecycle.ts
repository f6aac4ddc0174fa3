// Whether this page is frozen. Only pages can be frozen.

/** A frozen page still gets messages and locks, so code that starts work after such an event must check this first. */
class Life {
  isFrozen = false;
  #followed = false;
  #thawed: Promise<void> | undefined;
  #thaw = (): void => {};

  /** Starts to listen to the page's events, on the first call. */
  follow(): void {
    // Some servers have a `document` without events. It is never frozen.
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

  /** Resolves when the page is no longer frozen; undefined if it is not frozen. */
  thawed(): Promise<void> | undefined {
    return this.#thawed;
  }
}

export const life = new Life();
