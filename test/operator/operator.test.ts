/** The operator on a real API server without kubelets, under its own role. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { operatorNamespaceRules, operatorOwnRules, platformRules } from "../../src/release/roles/operator-rules.ts";
import type { Rule } from "../../src/release/roles/rules.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import type { Audit } from "../support/kube-audit.ts";
import { testNeeding } from "../support/needs.ts";
import { type OperatorSite, startOperatorSite } from "../support/operator-site.ts";
import { isForbidden, needs } from "../support/role-use.ts";
import { deletionTests } from "./deletion-tests.ts";
import { etcdTests } from "./etcd-tests.ts";
import { installationTests } from "./installation-tests.ts";
import { killedTests } from "./killed-tests.ts";
import { leaseTests } from "./lease-tests.ts";

interface Permission {
  readonly group: string;
  readonly resource: string;
  readonly verb: string;
}

/** A server-side apply that creates an object is audited as a patch, and needs both permissions. */
function permissionsIn({ apiGroups, resources, verbs, resourceNames }: Rule): readonly Permission[] {
  const seen = resourceNames === undefined ? verbs : verbs.filter((verb) => verb !== "create");
  return apiGroups.flatMap((group) => resources.flatMap((resource) => seen.map((verb) => ({ group, resource, verb }))));
}

const problem = apiServerProblem();
const testServer = testNeeding(problem);

describe("the operator", () => {
  let site: OperatorSite;
  let audit: Audit;

  beforeAll(async () => {
    if (problem !== undefined) return;
    site = await startOperatorSite();
    audit = site.server.startAudit();
  });
  afterAll(async () => site?.[Symbol.asyncDispose]());

  installationTests(() => site, testServer);
  deletionTests(() => site, testServer);
  etcdTests(() => site, testServer);
  killedTests(() => site, testServer);
  leaseTests(() => site, testServer);

  testServer("uses every permission that it does not only grant", () => {
    const asked = audit.requests(site.user);
    const unused = [...operatorOwnRules(), ...operatorNamespaceRules(), ...platformRules()]
      .flatMap(permissionsIn)
      .filter((permission) => !asked.some((request) => needs(request, permission)));

    expect(unused.map(({ verb, resource }) => `${verb} ${resource}`)).toEqual([
      // Only after a response was lost.
      `get ${identity.product}statuses`,
      "get ippools",
      "get nodeagentconfigurations",
    ]);
  });

  testServer("was never refused by its role", () => {
    const refused = audit.requests(site.user).filter(isForbidden);
    expect(refused.map(({ verb, uri }) => `${verb} ${uri}`)).toEqual([]);
  });
});
