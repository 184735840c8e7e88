# A Nix flake; `scripts/dist templates` fills in the version, the address and the checksums. The programs for
# Linux are static, so nothing is patched.
{
  description = "Measure MCP servers, tool search, scanners and agents";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      version = "@VERSION@";
      releases = {
        x86_64-linux = { target = "x86_64-unknown-linux-musl"; sha256 = "@SHA256:x86_64-unknown-linux-musl@"; };
        aarch64-linux = { target = "aarch64-unknown-linux-musl"; sha256 = "@SHA256:aarch64-unknown-linux-musl@"; };
        x86_64-darwin = { target = "x86_64-apple-darwin"; sha256 = "@SHA256:x86_64-apple-darwin@"; };
        aarch64-darwin = { target = "aarch64-apple-darwin"; sha256 = "@SHA256:aarch64-apple-darwin@"; };
      };
    in {
      packages = builtins.mapAttrs (system: release:
        let pkgs = nixpkgs.legacyPackages.${system};
        in {
          default = pkgs.stdenvNoCC.mkDerivation {
            pname = "karat";
            inherit version;
            src = pkgs.fetchurl {
              url = "@ADDRESS@/releases/download/v${version}/karat-${version}-${release.target}.tar.gz";
              inherit (release) sha256;
            };
            installPhase = ''
              install -Dm755 karat $out/bin/karat
            '';
            meta = {
              description = "Measure MCP servers, tool search, scanners and agents";
              license = with pkgs.lib.licenses; [ mit asl20 ];
              mainProgram = "karat";
            };
          };
        }) releases;
    };
}
