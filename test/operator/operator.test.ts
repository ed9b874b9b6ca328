/** The operator on a real API server without kubelets, under its own role. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import type { Audit } from "../support/kube-audit.ts";
import { testNeeding } from "../support/needs.ts";
import { type OperatorSite, startOperatorSite } from "../support/operator-site.ts";
import { isForbidden } from "../support/role-use.ts";
import { deletionTests } from "./deletion-tests.ts";
import { installationTests } from "./installation-tests.ts";
import { killedTests } from "./killed-tests.ts";
import { leaseTests } from "./lease-tests.ts";

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
  killedTests(() => site, testServer);
  leaseTests(() => site, testServer);

  testServer("was never refused by its role", () => {
    const refused = audit.requests(site.user).filter(isForbidden);
    expect(refused.map(({ verb, uri }) => `${verb} ${uri}`)).toEqual([]);
  });
});
