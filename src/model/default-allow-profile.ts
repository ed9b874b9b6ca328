/**
 * The profile that allows everything: built in, in no datastore. Automatic host endpoints have it, so that a host without
 * policies stays reachable. A stored profile of this name has no effect, and the admin tool refuses one.
 */
import { API_VERSION } from "../identity.ts";
import { DEFAULT_ALLOW_PROFILE, type Profile } from "./profile.ts";

export const defaultAllowProfile: Profile = {
  apiVersion: API_VERSION,
  kind: "Profile",
  metadata: { name: DEFAULT_ALLOW_PROFILE },
  spec: { ingress: [{ action: "Allow" }], egress: [{ action: "Allow" }] },
};
