/** Other filters are another place in the history of the browser; the flow that was open may not be among them. */
import { go, withParameters } from "../route.ts";

export function setFilters(changes: Readonly<Record<string, string | undefined>>): void {
  go(withParameters({ flow: undefined, ...changes }), "push");
}
