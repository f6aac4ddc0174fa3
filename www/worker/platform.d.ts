// The parts of the platform that the worker uses and that the DOM types do not have.

interface HtmlElement {
  append(content: string, options: { readonly html: boolean }): void;
}

declare class HTMLRewriter {
  on(selector: string, handlers: { element(element: HtmlElement): void }): this;
  transform(response: Response): Response;
}
