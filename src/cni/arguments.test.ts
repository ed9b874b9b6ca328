import { describe, expect, test } from "bun:test";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { decodeArguments, refuseTwoRequests } from "./arguments.ts";

describe("decodeArguments()", () => {
  test("reads what a container runtime sends", () => {
    const text =
      "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_INFRA_CONTAINER_ID=c1;K8S_POD_UID=u1;X=y";

    expect(decodeArguments(text)).toEqual({
      podNamespace: "default",
      podName: "web",
      infraContainerId: "c1",
      podUid: "u1",
    });
  });

  test.each([
    ["", {}],
    ["IP=10.0.0.9", { ip: "10.0.0.9" }],
    ["IP=", {}],
    ["IP=10.0.0.9;IP=10.0.0.9", { ip: "10.0.0.9" }],
    ["K8S_POD_NAME=a;K8S_POD_NAME=b", { podName: "b" }],
    ["MAC=02:00:00:00:00:07", { mac: "02:00:00:00:00:07" }],
    ["A=1;IgnoreUnknown=true", {}],
    ["IgnoreUnknown=TRUE;A=1", {}],
    ["IgnoreUnknown=false;IP=::1", { ip: "::1" }],
    ["toString=1;IgnoreUnknown=1", {}],
  ])("accepts %p", (text, expected) => {
    expect(decodeArguments(text)).toEqual(expected);
  });

  test.each([
    ["A", ['"A"']],
    ["A=1=2", ['"A=1=2"']],
    ["IP=1.2.3.4;", ['""']],
    ["=x", ['"=x"']],
    ["one;IP=1.2.3.4;two;IgnoreUnknown=1", ['"one"', '"two"']],
    ["A=1", ['"A"']],
    ["A=1;B=2", ['"A"', '"B"']],
    ["A=1;IgnoreUnknown=0", ['"A"']],
    ["A=1;IgnoreUnknown=maybe", ['"maybe"']],
    ["toString=1", ['"toString"']],
  ])("refuses %p and names each cause", (text, causes) => {
    const failure = thrownBy(() => decodeArguments(text));

    expect(failure.kind).toBe("environment-invalid");
    for (const culprit of causes) expect(failure.message).toContain(culprit);
  });
});

describe("refuseTwoRequests()", () => {
  test.each(["", "IP=10.0.0.1", "IP=10.0.0.1;IP=10.0.0.1", "K8S_POD_NAME=a;K8S_POD_NAME=b"])("lets %p pass", (text) => {
    refuseTwoRequests(text);
  });

  test.each([
    ["IP=10.0.0.1;IP=10.0.0.2", '"10.0.0.1", "10.0.0.2"'],
    ["MAC=02:00:00:00:00:07;IP=::1;MAC=02:00:00:00:00:08", '"02:00:00:00:00:07", "02:00:00:00:00:08"'],
  ])("refuses %p", (text, values) => {
    expect(thrownBy(() => refuseTwoRequests(text)).message).toContain(values);
  });
});
