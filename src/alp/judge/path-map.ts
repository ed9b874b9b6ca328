/**
 * A map by the paths of rules that also finds every one that the path of a request matches. There is one table for each
 * length of a prefix, so that a look-up takes as many steps as there are different lengths, however many paths there are.
 */
import type { HttpPath } from "../../http/http-match.ts";

export class PathMap<Value> {
  private readonly exact = new Map<string, Value>();
  private readonly prefixes = new Map<number, Map<string, Value>>();

  get(path: HttpPath): Value | undefined {
    return "exact" in path ? this.exact.get(path.exact) : this.prefixes.get(path.prefix.length)?.get(path.prefix);
  }

  set(path: HttpPath, value: Value): void {
    if ("exact" in path) {
      this.exact.set(path.exact, value);
      return;
    }
    const { prefix } = path;
    const ofLength = this.prefixes.get(prefix.length) ?? new Map<string, Value>();
    ofLength.set(prefix, value);
    this.prefixes.set(prefix.length, ofLength);
  }

  /** Appends the values of all that the path matches. */
  collect(path: string, found: Value[]): void {
    const exact = this.exact.get(path);
    if (exact !== undefined) found.push(exact);
    for (const [length, values] of this.prefixes) {
      if (length > path.length) continue;
      const value = values.get(path.slice(0, length));
      if (value !== undefined) found.push(value);
    }
  }
}
