/** The manifests of the quick start in docs/application-layer-policy.md, with the images of the tests. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ENVOY_IMAGE } from "../support/envoy-image.ts";
import { AGNHOST_IMAGE } from "../support/kube-images.ts";
import { PORTS } from "./served-pod.ts";

const PAGE = join(import.meta.dir, "../../docs/application-layer-policy.md");

export const QUICK_START = { namespace: "alp-demo", pod: "shop" } as const;

/** `image`: of the product. */
export function quickStart(image: string): string {
  const [, text = ""] = /```yaml\n([\s\S]*?)```/.exec(readFileSync(PAGE, "utf8")) ?? [];
  const application = `${AGNHOST_IMAGE}\n      args: [netexec, --http-port=${PORTS.application}, --udp-port=-1]`;
  return text
    .replace(/image: nginx$/m, `image: ${application}`)
    .replace(/image: envoyproxy\S+$/m, `image: ${ENVOY_IMAGE}`)
    .replace(/image: IMAGE .*$/m, `image: ${image}`);
}
