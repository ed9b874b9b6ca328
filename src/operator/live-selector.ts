/**
 * The selector of a workload cannot be changed. One that an earlier release created keeps its own: the new pods also get the
 * labels that it selects, and so replace the former ones one after another. Pure.
 */
import type { KubeObject } from "../release/kube-object.ts";
import { type LiveObject, memberAt, textsAt } from "../release/live-object.ts";

export function withLiveSelector(object: KubeObject, live: LiveObject | undefined): KubeObject {
  const selector = memberAt(live, "spec", "selector");
  const wanted = memberAt(object, "spec", "selector");
  const template = memberAt(object, "spec", "template");
  if (selector === undefined || template === undefined || Bun.deepEquals(selector, wanted)) return object;
  const labels = { ...textsAt(template, "metadata", "labels"), ...textsAt(selector, "matchLabels") };
  const metadata = { ...Object(memberAt(template, "metadata")), labels };
  return { ...object, spec: { ...Object(object["spec"]), selector, template: { ...Object(template), metadata } } };
}
