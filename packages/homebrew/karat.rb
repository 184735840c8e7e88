# A Homebrew formula; `scripts/dist templates` fills in the version, the address and the checksums.
class Karat < Formula
  desc "Measure MCP servers, tool search, scanners and agents"
  homepage "@ADDRESS@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "@ADDRESS@/releases/download/v@VERSION@/karat-@VERSION@-aarch64-apple-darwin.tar.gz"
      sha256 "@SHA256:aarch64-apple-darwin@"
    end
    on_intel do
      url "@ADDRESS@/releases/download/v@VERSION@/karat-@VERSION@-x86_64-apple-darwin.tar.gz"
      sha256 "@SHA256:x86_64-apple-darwin@"
    end
  end

  on_linux do
    on_arm do
      url "@ADDRESS@/releases/download/v@VERSION@/karat-@VERSION@-aarch64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256:aarch64-unknown-linux-musl@"
    end
    on_intel do
      url "@ADDRESS@/releases/download/v@VERSION@/karat-@VERSION@-x86_64-unknown-linux-musl.tar.gz"
      sha256 "@SHA256:x86_64-unknown-linux-musl@"
    end
  end

  def install
    bin.install "karat"
    generate_completions_from_executable(bin/"karat", "completions")
    (man1/"karat.1").write Utils.safe_popen_read(bin/"karat", "man")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/karat --version")
    system bin/"karat", "init", "--for", "proxy", "--ci", "none"
    system bin/"karat", "check", "--bundled"
  end
end
