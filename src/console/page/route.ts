/**
 * The view, as the fragment of the address says it: such a link can be shared.
 *
 *   #/health?node=NAME     #/flows?verdict=denied&flow=ID     #/addresses/POOL/BLOCK?address=ADDRESS
 */
import { signal } from "@preact/signals";
import { VIEWS, type View } from "../api/session.ts";

export interface Route {
  readonly view: View;
  /** After the name of the view. */
  readonly path: readonly string[];
  readonly parameters: Readonly<Record<string, string>>;
}

export function readRoute(hash: string): Route {
  const [place = "", query = ""] = hash.replace(/^#?\/?/, "").split(/\?(.*)/s);
  const [name, ...path] = place.split("/").map(decoded);
  const view = VIEWS.find((each) => each === name) ?? "health";
  return { view, path: path.filter((part) => part !== ""), parameters: Object.fromEntries(new URLSearchParams(query)) };
}

export function hashOf({ view, path = [], parameters = {} }: Partial<Route> & Pick<Route, "view">): string {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== ""));
  return `#/${[view, ...path].map(encodeURIComponent).join("/")}${query.size === 0 ? "" : `?${query}`}`;
}

/** Somebody may type anything after the "#". */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const route = signal<Route>({ view: "health", path: [], parameters: {} });

/** `replace`: it is the same view with another detail, which "back" leaves. */
export function go(to: Partial<Route> & Pick<Route, "view">, how: "push" | "replace" = "push"): void {
  const hash = hashOf(to);
  if (hash === location.hash) return;
  if (how === "push") history.pushState(null, "", hash);
  else history.replaceState(null, "", hash);
  route.value = readRoute(hash);
}

/** The same view with other parameters; `undefined` removes one. */
export function withParameters(changes: Readonly<Record<string, string | undefined>>): Route {
  const { view, path, parameters } = route.peek();
  const entries = Object.entries({ ...parameters, ...changes });
  const left = entries.filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== "");
  return { view, path, parameters: Object.fromEntries(left) };
}

export function followAddress(): void {
  const read = () => {
    route.value = readRoute(location.hash);
  };
  addEventListener("hashchange", read);
  addEventListener("popstate", read);
  read();
}
