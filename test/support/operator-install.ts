/** The product installed by its operator, with kubectl, as docs/install.md says. */
import { apiVersionOf, identity, OPERATOR_API } from "../../src/identity.ts";
import { POD_RANGES } from "./bare-cluster.ts";
import type { ApiServer } from "./kube-apiserver.ts";
import type { Kubectl } from "./kubectl.ts";
import { manifestText } from "./manifest-text.ts";

export const INSTALLED_STORES = ["kubernetes", "etcd"] as const;
export type InstalledStore = (typeof INSTALLED_STORES)[number];

/** Starts the operator, which then waits for an Installation. */
export async function installOperator({ kubectl }: Pick<Kubectl, "kubectl">): Promise<void> {
  for (const file of ["operator-crds.yaml", "operator.yaml"]) {
    await kubectl(["apply", "--server-side", "--filename=-"], manifestText(file));
  }
}

/** The Installation of both families, on this datastore. */
export function installationOn({ etcdEndpoint }: ApiServer, store: InstalledStore) {
  return {
    apiVersion: apiVersionOf(OPERATOR_API),
    kind: "Installation",
    metadata: { name: "default" },
    spec: {
      ...(store === "etcd" ? { datastore: { type: "Etcd", etcd: { endpoints: [etcdEndpoint] } } } : {}),
      [`${identity.product}Network`]: { ipPools: POD_RANGES.map((cidr) => ({ cidr })) },
    },
  };
}

/** Waits until everything that the Installation asks for runs on every node; if it does not, says what the operator says. */
export async function untilInstalled({ kubectl }: ApiServer): Promise<void> {
  await kubectl(["wait", "installation/default", "--for=condition=Ready", "--timeout=120s"]).catch(async (error) => {
    const states = [
      await kubectl(["get", "installation/default", "--output=yaml"]),
      await kubectl(["get", "pods", "--all-namespaces", "--output=wide"]),
      await kubectl(["get", "events", "--all-namespaces", "--field-selector=type=Warning"]),
      await kubectl(["logs", `--namespace=${identity.operator}`, `deployment/${identity.operator}`, "--tail=40"]).catch(
        String,
      ),
    ];
    throw new Error(`${error.message}\n${states.join("\n")}`, { cause: error });
  });
}

/** Returns when the Installation and everything of it is gone, and the operator. */
export async function removeInstallation({ kubectl }: ApiServer): Promise<void> {
  await kubectl(["delete", "installation/default", "--timeout=120s"]);
  await kubectl(["wait", "--for=delete", `namespace/${identity.systemNamespace}`, "--timeout=60s"]);
  await kubectl(["delete", "--filename=-", "--timeout=60s"], manifestText("operator.yaml"));
}
