/**
 * The Debian packages (12, "bookworm") that the image is made of. A package is identified by its hash; the paths are
 * those in Debian's archives.
 */
import type { ImageArchitecture } from "./archive.ts";

export interface DebianPackage {
  readonly name: string;
  /** Archive and path there. */
  readonly path: string;
  /** Of the file, SHA-256. */
  readonly digest: string;
}

/** Seconds since 1970: the time of the files in the image. To be raised when the table changes. */
export const PACKAGES_TIME = Date.UTC(2026, 10, 16) / 1000;

const BOTH: readonly DebianPackage[] = [
  {
    name: "ca-certificates",
    path: "debian-security/pool/updates/main/c/ca-certificates/ca-certificates_20250419~deb12u2_all.deb",
    digest: "b9f76b5271a7ac373fd5e7e1b5b826a71ddd702b42a0d104955ecb1acfffc94b",
  },
];

export const IMAGE_PACKAGES: Readonly<Record<ImageArchitecture, readonly DebianPackage[]>> = {
  amd64: [
    ...BOTH,
    {
      name: "base-files",
      path: "debian/pool/main/b/base-files/base-files_12.4+deb12u15_amd64.deb",
      digest: "3eb1ea6d85488f488cc2a163b98ad640ef88cee4c79287cf14e361aaf6206f47",
    },
    {
      name: "libc6",
      path: "debian/pool/main/g/glibc/libc6_2.36-9+deb12u14_amd64.deb",
      digest: "ba4f88f73dbc3ae9055f3c20f4523bfdbaf1ad13ff95e258924f77d20b4fbedf",
    },
    {
      name: "bird2",
      path: "debian/pool/main/b/bird2/bird2_2.0.12-7_amd64.deb",
      digest: "79cb27320cedf66dde085b7752c5a0f4daa89399b95029ada1b007cb45f52909",
    },
    {
      name: "libssh-gcrypt-4",
      path: "debian-security/pool/updates/main/libs/libssh/libssh-gcrypt-4_0.10.6-0+deb12u3_amd64.deb",
      digest: "caf4dad1cf601bf467615606f0f126333902e48cc019f7d9d51d3b061d6bea4d",
    },
    {
      name: "libgcrypt20",
      path: "debian/pool/main/libg/libgcrypt20/libgcrypt20_1.10.1-3+deb12u1_amd64.deb",
      digest: "e7a56552139c693904a6f9712234c05fe918353273a7cbdb5e62f423ad71bb97",
    },
    {
      name: "libgpg-error0",
      path: "debian/pool/main/libg/libgpg-error/libgpg-error0_1.46-1_amd64.deb",
      digest: "89944ee11d7370ce6ef46fc52f094c4a6512eff8943ec4c6ebefeae6360ceada",
    },
    {
      name: "zlib1g",
      path: "debian/pool/main/z/zlib/zlib1g_1.2.13.dfsg-1_amd64.deb",
      digest: "d7dd1d1411fedf27f5e27650a6eff20ef294077b568f4c8c5e51466dc7c08ce4",
    },
    {
      name: "libgssapi-krb5-2",
      path: "debian/pool/main/k/krb5/libgssapi-krb5-2_1.20.1-2+deb12u5_amd64.deb",
      digest: "d8b87aea91b956b416c01a28c44ff6228315ae3b73de40acddac3dc5043607d2",
    },
    {
      name: "libkrb5-3",
      path: "debian/pool/main/k/krb5/libkrb5-3_1.20.1-2+deb12u5_amd64.deb",
      digest: "c90801be09701af221b54dd502a59cb378b7284ff31e480738baca317d2f7653",
    },
    {
      name: "libk5crypto3",
      path: "debian/pool/main/k/krb5/libk5crypto3_1.20.1-2+deb12u5_amd64.deb",
      digest: "7b6e47d15c5c9cdcd456137533d8308aeba608a54cec73b28bd59bfc4b54cf06",
    },
    {
      name: "libkrb5support0",
      path: "debian/pool/main/k/krb5/libkrb5support0_1.20.1-2+deb12u5_amd64.deb",
      digest: "8b9c05f2d8d461a10d657b118f572af5bf8fd6c8f93dcef81e852c5ab0f428ab",
    },
    {
      name: "libcom-err2",
      path: "debian/pool/main/e/e2fsprogs/libcom-err2_1.47.0-2+b2_amd64.deb",
      digest: "a2bac7015e78fbc0c504df3e441f3a22292f1d2d77f9ccda760057f3690e22f2",
    },
    {
      name: "libkeyutils1",
      path: "debian/pool/main/k/keyutils/libkeyutils1_1.6.3-2_amd64.deb",
      digest: "cfac89e6a7a54ff3c6a4f843310e25efeddaa771baeae470bd98bd588c373563",
    },
  ],
  arm64: [
    ...BOTH,
    {
      name: "base-files",
      path: "debian/pool/main/b/base-files/base-files_12.4+deb12u15_arm64.deb",
      digest: "b1272fbdc197f7d5bd22c05b741a03840f8bec66ca68c8d797f567ff2c99d42d",
    },
    {
      name: "libc6",
      path: "debian/pool/main/g/glibc/libc6_2.36-9+deb12u14_arm64.deb",
      digest: "01f4330719fd4f65580e16ea5a0527f372fca750e8f588d26deaf09f2d3b1cf4",
    },
    {
      name: "bird2",
      path: "debian/pool/main/b/bird2/bird2_2.0.12-7_arm64.deb",
      digest: "2cb28458fa5ca9859e508b71eaef806dbeccf8f3bcc6f31464f9006af5e3d6ee",
    },
    {
      name: "libssh-gcrypt-4",
      path: "debian-security/pool/updates/main/libs/libssh/libssh-gcrypt-4_0.10.6-0+deb12u3_arm64.deb",
      digest: "439ccd23ed5cff148b4d75a0c3f0dbb9b139058d6702a2929a03001f8f753863",
    },
    {
      name: "libgcrypt20",
      path: "debian/pool/main/libg/libgcrypt20/libgcrypt20_1.10.1-3+deb12u1_arm64.deb",
      digest: "140af58350c9b15bfa611000d9e0205528bbed2cba39271bf12bd36de2678f2e",
    },
    {
      name: "libgpg-error0",
      path: "debian/pool/main/libg/libgpg-error/libgpg-error0_1.46-1_arm64.deb",
      digest: "aff6ce011ae9abf7090e906f0cf6bc2b447bbc4cc7e03ff117f9d73528857352",
    },
    {
      name: "zlib1g",
      path: "debian/pool/main/z/zlib/zlib1g_1.2.13.dfsg-1_arm64.deb",
      digest: "52b8b8a145bbe1956bba82034f77022cbef0c3d0885c9e32d9817a7932fe1913",
    },
    {
      name: "libgssapi-krb5-2",
      path: "debian/pool/main/k/krb5/libgssapi-krb5-2_1.20.1-2+deb12u5_arm64.deb",
      digest: "a00678963f692a929312968f19b77a61a8fc0011690d7dc909a8a2c4810fc7b3",
    },
    {
      name: "libkrb5-3",
      path: "debian/pool/main/k/krb5/libkrb5-3_1.20.1-2+deb12u5_arm64.deb",
      digest: "c3c7227f5db903a7a8b8936d47d1d79643edcda36365c4c992e1a96bcc2d4c7e",
    },
    {
      name: "libk5crypto3",
      path: "debian/pool/main/k/krb5/libk5crypto3_1.20.1-2+deb12u5_arm64.deb",
      digest: "8ae2c31cde0b3e6f80c573a495b0f90bf6d9efb4455d900728278bb54d9092e5",
    },
    {
      name: "libkrb5support0",
      path: "debian/pool/main/k/krb5/libkrb5support0_1.20.1-2+deb12u5_arm64.deb",
      digest: "3043fd4a54b945a1b503170749527f825dcfc7add2f8bf5abb4a329deeb48f4a",
    },
    {
      name: "libcom-err2",
      path: "debian/pool/main/e/e2fsprogs/libcom-err2_1.47.0-2+b2_arm64.deb",
      digest: "36c15f933a965b50f4c9558d792d9556934c84e532703935d8ae7e69dd3fa863",
    },
    {
      name: "libkeyutils1",
      path: "debian/pool/main/k/keyutils/libkeyutils1_1.6.3-2_arm64.deb",
      digest: "aac46cb6faec4e737502b3c2290b7b02f8ba04e8accd5af7fd07934df0c867b1",
    },
  ],
};
