/** Which permissions of a role nobody used. */
import { type Permission, permissionsOf, type RoleDatastore } from "../../src/release/roles/role-files.ts";
import type { AuditedRequest } from "./kube-audit.ts";

export function unusedPermissions(role: RoleDatastore, asked: readonly AuditedRequest[]): readonly Permission[] {
  return permissionsOf(role).filter((permission) => !asked.some((request) => needs(request, permission)));
}

/** Whether the request was one for which the permission is needed. */
export function needs(request: AuditedRequest, { verb, resource, group }: Permission): boolean {
  const isAsked = request.verb === verb || (verb === "list" && isStreamedList(request));
  const root = group === "" ? "/api/v1/" : `/apis/${group}/`;
  return isAsked && request.resource === resource && request.uri.startsWith(root);
}

/** A list as the beginning of a watch: servers that cannot do that need the permission to list. */
export function isStreamedList({ verb, uri }: AuditedRequest): boolean {
  return verb === "watch" && uri.includes("sendInitialEvents=true");
}

export function isForbidden({ status }: AuditedRequest): boolean {
  return status === 403;
}
