// CORS: which origins may send requests, and the headers for their browsers.

const METHODS = "GET, POST, PUT, PATCH, DELETE, OPTIONS";
const HEADERS = "authorization, content-type, last-event-id, x-lockgate";

/** How long a browser may cache the answer to a preflight request, in seconds. */
const REMEMBERED = "86400";

/** Whether this request may be answered. Pages of other origins must be in `origins`. */
export function isAllowed(request: Request, origins: readonly string[]): boolean {
  const origin = request.headers.get("origin");
  return origin === null || origin === new URL(request.url).origin || origins.includes(origin) || origins.includes("*");
}

/**
 * Whether a request could have been sent by a page that the browser did not ask for permission. Forms and simple requests of any
 * page carry the cookies of the user; they can set neither this content type nor a header of their own.
 */
export function isForgeable({ method, headers }: Request): boolean {
  if (method === "GET" || method === "HEAD" || headers.has("x-lockgate")) return false;
  const [type = ""] = (headers.get("content-type") ?? "").split(";");
  return type.trim().toLowerCase() !== "application/json";
}

/** The answer to a preflight request. */
export function preflight(request: Request, origins: readonly string[]): Response {
  const wanted = request.headers.get("access-control-request-headers");
  const headers = {
    "access-control-allow-methods": METHODS,
    "access-control-allow-headers": wanted ?? HEADERS,
    "access-control-max-age": REMEMBERED,
  };
  return crossed(request, origins, new Response(null, { status: 204, headers }));
}

/** The response with the headers that let a page of an allowed origin read it. */
export function crossed(request: Request, origins: readonly string[], response: Response): Response {
  const origin = request.headers.get("origin");
  if (origin === null || origin === new URL(request.url).origin) return response;
  const headers = new Headers(response.headers);
  // Any origin may read what it could read without cookies.
  const isNamed = origin !== "*" && origins.includes(origin);
  headers.set("access-control-allow-origin", isNamed ? origin : "*");
  if (isNamed) headers.set("access-control-allow-credentials", "true");
  headers.set("access-control-expose-headers", "x-lockgate-call");
  headers.append("vary", "origin");
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}
