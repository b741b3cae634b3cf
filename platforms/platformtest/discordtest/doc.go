// Package discordtest is Discord for tests: REST API v9 and v10, the gateway WebSocket, the content network, and
// the guilds, channels and people behind them, without anything outside the process.
//
// A Discord is a http.Handler. Start gives it a loopback port; then
//
//	REST     http://127.0.0.1:PORT/api/v9/… and /api/v10/… (and /api/… as v10)
//	gateway  ws://127.0.0.1:PORT/gateway, named by GET /gateway and /gateway/bot
//	files    http://127.0.0.1:PORT/attachments/CHANNEL/ATTACHMENT/NAME
//
// A test builds the place (AddGuild, AddUser, AddChannel, DM …), lets people act (Write, Press, Run …), and reads what
// they see (Visible, Interaction). What goes wrong is scripted with Break (REST), BreakGateway, Reconnect,
// Invalidate, CloseGateway, Revoke, Shut and Cut; Heal ends it.
//
// The rules that are enforced are Discord's: intents filter events and blank content, permissions are computed from
// roles and overwrites, limits are counted in the service's units, refusals carry its codes and words. Numbers that
// a test may want smaller (heartbeat, resume window, interaction time) are Options.
package discordtest
