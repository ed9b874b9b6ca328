/**
 * The operator of this release: it runs, in the test's process, as long as the pods of its Deployment would be of this release.
 * If they would be of the former one, its node agents are put back, as that operator does it.
 */
import { identity } from "../../../src/identity.ts";
import { VERSION } from "../../../src/version.ts";
import { startOperatorOn, type TestOperator } from "../operator-site.ts";
import type { AnyObject } from "./former-object.ts";
import type { OlderCluster } from "./older-cluster.ts";

const DEPLOYMENT = `/apis/apps/v1/namespaces/${identity.operator}/deployments/${identity.operator}`;
const AGENTS = `/apis/apps/v1/namespaces/${identity.systemNamespace}/daemonsets/${identity.nodeAgent}`;
const PAUSE_MILLISECONDS = 100;

/** Of the account that the upgrade has applied: it is not written again. */
function existingAccount({ kubectl, credentials }: OlderCluster): OlderCluster["serviceAccount"] {
  return async ({ name, namespace = "kube-system" }) => {
    const token = (await kubectl(["create", "token", name, `--namespace=${namespace}`, "--duration=24h"])).trim();
    const kubeconfig = credentials.writeKubeconfig(`${namespace}-${name}`, { token });
    return { kubeconfig, token, user: `system:serviceaccount:${namespace}:${name}` };
  };
}

/** Until it is disposed of. */
export function runOperatorOfRelease(cluster: OlderCluster): AsyncDisposable {
  let isEnding = false;
  let operator: TestOperator | undefined;
  const end = async () => {
    await operator?.stop();
    operator = undefined;
  };
  let formerAgents: AnyObject;
  const renderFormer = async () => {
    const agents: AnyObject = await cluster.objects.read(AGENTS);
    const isPresent = agents?.spec.template.spec.containers.some(({ image }: AnyObject) =>
      image.endsWith(`:${VERSION}`),
    );
    if (isPresent === false) formerAgents ??= agents.spec;
    if (isPresent === true && formerAgents !== undefined)
      await cluster.objects.replace(AGENTS, { ...agents, spec: formerAgents });
  };
  const follow = async () => {
    while (!isEnding) {
      const deployment: AnyObject = await cluster.objects.read(DEPLOYMENT).catch(() => undefined);
      const image: string =
        deployment?.spec.replicas === 0 ? "" : (deployment?.spec.template.spec.containers[0].image ?? "");
      if (image.endsWith(`:${VERSION}`))
        operator ??= await startOperatorOn({ serviceAccount: existingAccount(cluster) });
      else await end();
      // Another writer may be quicker.
      if (image !== "" && operator === undefined) await renderFormer().catch(() => {});
      await Bun.sleep(PAUSE_MILLISECONDS);
    }
    await end();
  };
  const following = follow();
  return {
    async [Symbol.asyncDispose]() {
      isEnding = true;
      await following;
    },
  };
}
