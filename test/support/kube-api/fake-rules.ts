/** What an API server does besides storing, as far as a test or a simulation of it needs that. */
import type { KubeRequest, KubeResponse } from "../../../src/kube/api.ts";
import type { FakeObject } from "./fake-patches.ts";

export interface ServerRules {
  /** What the server says without looking at its objects; `undefined`: it looks. */
  answer?(request: KubeRequest): KubeResponse | undefined;
  /** The object as it is stored, or why it is refused. */
  admit(write: AdmittedWrite): FakeObject | KubeResponse;
  /** A server-side apply: the whole object, or why it is refused. */
  apply(write: AdmittedWrite): FakeObject | KubeResponse;
}

export interface AdmittedWrite {
  readonly request: KubeRequest;
  /** Of the object. */
  readonly path: string;
  /** `undefined` if it is created. */
  readonly before: FakeObject | undefined;
  readonly after: FakeObject;
}

export function isRefusal(outcome: FakeObject | KubeResponse): outcome is KubeResponse {
  return typeof outcome["status"] === "number";
}
