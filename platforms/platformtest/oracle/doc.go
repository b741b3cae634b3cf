// Package oracle runs clients that others wrote (Slack's Bolt, discord.js, grammY, botbuilder) against the fake
// servers, so that a fake can't drift from its platform: what such a client refuses is a bug of the fake.
//
// A script in this folder is one client. It says what happened in JSON lines on its standard output and takes
// commands in JSON lines on its standard input; lib.mjs has both ends. The packages are pinned in package.json and
// installed by `make oracles`.
package oracle
