// What of the platform the worker uses, and the types of a page do not have.

interface HtmlElement {
  append(content: string, options: { readonly html: boolean }): void;
}

declare class HTMLRewriter {
  on(selector: string, handlers: { element(element: HtmlElement): void }): this;
  transform(response: Response): Response;
}
