import { describe, expect, test } from "bun:test";
import { type PublishInput, podAttributes, publishRequest, refusalOf } from "../../../test/support/csi.ts";
import { encodeMap, encodeMessage, type Field } from "../../../test/support/protobuf.ts";
import { Fields } from "../../grpc/protobuf.ts";
import { volumeRequest, volumeToRemove } from "./volume-request.ts";

const decode = (fields: readonly Field[]) => volumeRequest(new Fields(encodeMessage(fields)));

describe("volumeRequest()", () => {
  test("reads what the kubelet says about the pod, and the default user", () => {
    expect(decode(publishRequest({ id: "csi-7", target: "/kubelet/mount", uid: "uid-7" }))).toEqual({
      id: "csi-7",
      target: "/kubelet/mount",
      uid: "uid-7",
      namespace: "red",
      pod: "web",
      user: 65532,
    });
  });

  test.each([
    ["0", 0],
    ["1337", 1337],
    ["4294967294", 4_294_967_294],
  ])("reads the user %s", (user, number) => {
    expect(decode(publishRequest({ attributes: { user } })).user).toBe(number);
  });

  test.each(["", "-1", "1.5", "0x10", "01", "root", " 5", "4294967295", "99999999999"])(
    "refuses the user %p",
    (user) => {
      expect(refusalOf(() => decode(publishRequest({ attributes: { user } })))).toMatchObject({
        status: "invalid-argument",
        message: expect.stringContaining(`volumeAttributes.user ${JSON.stringify(user)} is not the number of a user`),
      });
    },
  );

  const REFUSALS: readonly (readonly [string, PublishInput, string])[] = [
    [
      "an unknown attribute",
      { attributes: { path: "/", user: "5" } },
      '"volumeAttributes.path"; the only attribute is "user"',
    ],
    ["several of them", { attributes: { a: "", b: "" } }, '"volumeAttributes.a", "volumeAttributes.b"'],
    ["a persistent volume", { attributes: { "csi.storage.k8s.io/ephemeral": "false" } }, "has no persistent volumes"],
    ["a block device", { more: [[5, encodeMessage([[1, new Uint8Array()]])]] }, "not a block device"],
    ["a volume that is not read-only", { more: [[6, 0]] }, "set readOnly of spec.volumes[].csi to true"],
    ["Secrets", { more: encodeMap(7, { key: "value" }) }, "nodePublishSecretRef is not supported"],
    ["no ID", { id: "" }, 'volume_id "" is not'],
    ["an ID that is a path", { id: "../x" }, 'volume_id "../x" is not'],
    ["a UID that is a path", { uid: ".." }, 'pod.uid ".." is not'],
    ["no target", { target: "" }, "target_path is missing"],
  ];
  test.each(REFUSALS)("refuses %s", (_, input, message) => {
    expect(refusalOf(() => decode(publishRequest(input)))).toMatchObject({
      status: "invalid-argument",
      message: expect.stringContaining(message),
    });
  });

  test.each(["name", "namespace", "uid"])(
    "refuses a call without pod.%s, and says how the kubelet gives it",
    (name) => {
      const { [`csi.storage.k8s.io/pod.${name}`]: _, ...attributes } = podAttributes("uid-1");
      const fields: readonly Field[] = [[1, "csi-1"], [4, "/kubelet/mount"], [6, 1], ...encodeMap(8, attributes)];
      expect(refusalOf(() => decode(fields))).toMatchObject({
        status: "failed-precondition",
        message: expect.stringContaining("podInfoOnMount"),
      });
    },
  );
});

describe("volumeToRemove()", () => {
  const remove = (id: string, target: string) =>
    volumeToRemove(
      new Fields(
        encodeMessage([
          [1, id],
          [2, target],
        ]),
      ),
    );

  test("reads ID and target, and refuses a call without them", () => {
    expect(remove("csi-1", "/kubelet/mount")).toEqual({ id: "csi-1", target: "/kubelet/mount" });
    expect(refusalOf(() => remove("", "/kubelet/mount"))).toMatchObject({ status: "invalid-argument" });
    expect(refusalOf(() => remove("csi-1", ""))).toMatchObject({ status: "invalid-argument" });
  });
});
