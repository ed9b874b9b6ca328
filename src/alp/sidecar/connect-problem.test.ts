import { expect, test } from "bun:test";
import { identity } from "../../identity.ts";
import { connectProblem } from "./connect-problem.ts";

const { csiDriver, nodeAgent } = identity;

test.each([
  ["ENOENT", `there is no such socket: is the volume ${csiDriver} mounted, and does ${nodeAgent} run on this node?`],
  ["EACCES", "the volume's `user` is not the user of this process"],
  ["ECONNREFUSED", "the node agent does not run"],
  ["EMFILE", "cannot connect: EMFILE"],
])("connectProblem() says what to look at after %s", (code, text) => {
  expect(connectProblem(code)).toBe(text);
});
