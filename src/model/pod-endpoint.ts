/** What the endpoint of a pod gets from the pod itself, whichever datastore it is recorded in. Pure. */
import { identity } from "../identity.ts";
import { endpointLabels } from "./endpoint-labels.ts";
import { type PodPort, portsOfPod } from "./pod-ports.ts";
import { isObject } from "./shape.ts";

type Fields = Readonly<Record<string, unknown>>;
type Texts = Readonly<Record<string, string>>;

/** An orchestrator's object: the parts that are used here. */
export interface PodObject {
  readonly metadata: Fields;
  readonly spec: Fields;
}

export interface PodEndpoint {
  readonly metadata: { readonly labels: Texts; readonly generateName?: string };
  readonly spec: {
    readonly serviceAccountName?: string;
    readonly profiles: readonly string[];
    readonly ports?: readonly PodPort[];
  };
}

/** A longer name does not fit into a label. */
const LONGEST_LABEL = 63;

export function podEndpointOf({ metadata, spec }: PodObject): PodEndpoint {
  const namespace = textOf(metadata, "namespace") ?? "";
  const generateName = textOf(metadata, "generateName");
  const account = textOf(spec, "serviceAccountName");
  const ports = portsOfPod(spec);
  return {
    metadata: {
      labels: {
        ...endpointLabels(withoutAccount(textsIn(metadata, "labels")), { namespace, orchestrator: "k8s" }),
        ...accountLabel(account),
      },
      ...(generateName === undefined ? {} : { generateName }),
    },
    spec: {
      ...(account === undefined ? {} : { serviceAccountName: account }),
      profiles: [`kns.${namespace}`, ...(account === undefined ? [] : [`ksa.${namespace}.${account}`])],
      ...(ports.length === 0 ? {} : { ports }),
    },
  };
}

const ACCOUNT_LABEL = `${identity.labelPrefix}serviceaccount`;

function accountLabel(account: string | undefined): Texts {
  return account === undefined || account.length >= LONGEST_LABEL ? {} : { [ACCOUNT_LABEL]: account };
}

/** The author of a pod does not choose this label. */
function withoutAccount({ [ACCOUNT_LABEL]: _, ...labels }: Texts): Texts {
  return labels;
}

/** The object in a field such as `spec` or `status`; empty if it is absent. */
export function partOf(object: Fields, field: string): Fields {
  const part = object[field];
  return isObject(part) ? part : {};
}

/** The text in a field; `undefined` if it is absent or empty. */
export function textOf(object: Fields, field: string): string | undefined {
  const value = object[field];
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** The texts in a field such as `labels` or `annotations`. */
export function textsIn(object: Fields, field: string): Texts {
  const part = object[field];
  if (!isObject(part)) return {};
  return Object.fromEntries(
    Object.entries(part).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}
