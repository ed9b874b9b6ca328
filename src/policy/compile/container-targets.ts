/**
 * ContainerLabels by whom they are about, one change at a time. An endpoint names its targets, and the label index gives it what
 * they have. If several resources are about the same, all count, and the first by key wins.
 */
import { type ContainerLabels, givenLabels, targetKey } from "../../model/container-labels.ts";
import type { Labels } from "../../selector/selector.ts";

export class ContainerTargets {
  private readonly targetOf = new Map<string, string>();
  private readonly labelsOf = new Map<string, Map<string, Labels>>();

  /** `undefined`: the resource is gone. Returns the targets whose labels may have changed, with those that they have now. */
  put(key: string, resource: ContainerLabels | undefined): readonly (readonly [string, Labels | undefined])[] {
    const before = this.targetOf.get(key);
    const now = resource && targetKey(resource.spec);
    if (before !== undefined) this.forget(before, key);
    this.targetOf.delete(key);
    if (resource !== undefined && now !== undefined) {
      this.targetOf.set(key, now);
      const known = this.labelsOf.get(now) ?? new Map<string, Labels>();
      this.labelsOf.set(now, known.set(key, givenLabels(resource.spec)));
    }
    const changed = new Set([before, now].filter((target) => target !== undefined));
    return Array.from(changed, (target) => [target, this.merged(target)]);
  }

  private forget(target: string, key: string): void {
    const known = this.labelsOf.get(target);
    known?.delete(key);
    if (known?.size === 0) this.labelsOf.delete(target);
  }

  private merged(target: string): Labels | undefined {
    const known = this.labelsOf.get(target);
    if (known === undefined) return undefined;
    const inOrder = Array.from(known).sort(([left], [right]) => (left < right ? 1 : -1));
    return Object.assign({}, ...inOrder.map(([, labels]) => labels));
  }
}
