#!/usr/bin/env node
// Runs the program that npm installed for this system and processor, with the same arguments, streams and
// exit code. Signals that end this process are passed on, so that Karat can stop what it started.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

function program() {
  if (process.env.KARAT_BINARY) return process.env.KARAT_BINARY;
  const name = `@karat/${process.platform}-${process.arch}`;
  const file = process.platform === "win32" ? "karat.exe" : "karat";
  try {
    return require.resolve(`${name}/bin/${file}`);
  } catch {
    const known = Object.keys(require("./package.json").optionalDependencies ?? {});
    console.error(
      known.includes(name)
        ? `karat: the package ${name} is not installed; install again without --omit=optional (--no-optional)`
        : `karat: there is no package for ${process.platform} on ${process.arch}; build Karat from source, ` +
            "and set KARAT_BINARY to it",
    );
    process.exit(3);
  }
}

// Before the program is started: a signal that comes right after that must reach it too.
let child;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child = spawn(program(), process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`karat: ${error.message}`);
  process.exit(3);
});
child.on("exit", (code, signal) => {
  process.exit(code ?? 128 + (constants.signals[signal] ?? 0));
});
