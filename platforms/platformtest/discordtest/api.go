package discordtest

import (
	"context"
	"net/http"
	"time"
)

// Discord is the fake. All methods are safe for concurrent use.
type Discord struct{ o Options }

// New returns a fake that listens nowhere yet: use it as a handler, or Start it.
func New(o Options) *Discord { return &Discord{o: o} }

// Start listens on a free loopback port and returns the server's base URL, without a slash at its end.
func (d *Discord) Start() (string, error) { return "", nil }

// Serve listens on addr and serves until ctx ends.
func (d *Discord) Serve(ctx context.Context, addr string) error { return nil }

// Shut takes the server off the network: connections are cut, new ones refused. Open brings it back.
func (d *Discord) Shut() {}

// Open listens again on the address that Start chose. It fails when it is open.
func (d *Discord) Open() error { return nil }

// Cut closes all connections, REST and gateway, with a reset; the server stays. Sessions can be resumed.
func (d *Discord) Cut() error { return nil }

// Close ends the server and everything that hangs in it.
func (d *Discord) Close() {}

// ServeHTTP answers REST, gateway and files.
func (d *Discord) ServeHTTP(w http.ResponseWriter, r *http.Request) {}

// URL returns the base URL after Start.
func (d *Discord) URL() string { return "" }

// ---- the place

// Bot returns the bot itself.
func (d *Discord) Bot() User { return User{} }

// BotRole returns the bot's own managed role in a guild. Its permissions are set with SetRole.
func (d *Discord) BotRole(guild ID) ID { return "" }

// AddUser makes a person, or another bot.
func (d *Discord) AddUser(u User) ID { return "" }

// AddGuild makes a guild with the bot and the people in it, and tells connected bots. Tier is the boost level, which
// sets the upload limit: 0 and 1 10 MiB, 2 50 MiB, 3 100 MiB.
func (d *Discord) AddGuild(name string, tier int, people ...ID) ID { return "" }

// AddMember puts a person into a guild, with roles.
func (d *Discord) AddMember(guild, user ID, roles ...ID) {}

// RemoveMember takes somebody out of a guild. When it is the bot, the guild is gone for it.
func (d *Discord) RemoveMember(guild, user ID) {}

// SetNick sets a member's name in a guild.
func (d *Discord) SetNick(guild, user ID, nick string) {}

// AddRole makes a role.
func (d *Discord) AddRole(guild ID, name string, p Permissions) ID { return "" }

// SetRole changes what a role may do. The guild's own id is the role @everyone.
func (d *Discord) SetRole(guild, role ID, p Permissions) {}

// Overwrite sets what a role or user may and may not do in a channel, on top of the roles.
func (d *Discord) Overwrite(channel, who ID, allow, deny Permissions) {}

// AddChannel makes a channel of a guild. Only ID (made when empty), Guild, Parent, Type, Name and Topic are used.
func (d *Discord) AddChannel(c Channel) ID { return "" }

// DM returns the direct channel of the bot and a person, and makes it when it is new.
func (d *Discord) DM(user ID) ID { return "" }

// CloseDMs makes the person refuse direct messages of the bot (50007), or take them again.
func (d *Discord) CloseDMs(user ID, closed bool) {}

// Channel returns a channel or thread as it stands.
func (d *Discord) Channel(id ID) (Channel, bool) { return Channel{}, false }

// Threads returns the threads of a channel, oldest first.
func (d *Discord) Threads(parent ID) []Channel { return nil }

// DropChannel deletes a channel or thread.
func (d *Discord) DropChannel(id ID) {}

// SetThread archives or opens, and locks or unlocks, a thread.
func (d *Discord) SetThread(thread ID, archived, locked bool) {}

// ---- people

// Say makes the usual person of a channel write text, and returns the message's id.
func (d *Discord) Say(channel ID, text string) ID { return d.Write(Post{Channel: channel, Text: text}) }

// Write makes somebody write, and returns the message's id. People have no limits but what the channel is.
func (d *Discord) Write(p Post) ID { return "" }

// OpenPost makes somebody open a forum post, and returns the thread's id, which is its first message's too.
func (d *Discord) OpenPost(title string, p Post) ID { return "" }

// StartThread makes somebody start a thread from a message (the ids are the same), or without one when message is
// empty. private asks for a private one, which has no message.
func (d *Discord) StartThread(channel, message ID, name string, who ID, private bool) ID { return "" }

// JoinThread and LeaveThread change who is in a thread. Adding the bot shows it a private thread.
func (d *Discord) JoinThread(thread, user ID) {}

// LeaveThread takes somebody out of a thread.
func (d *Discord) LeaveThread(thread, user ID) {}

// Rewrite makes a message's author edit its text.
func (d *Discord) Rewrite(channel, message ID, text string) {}

// Unfurl adds an embed to a message as the service does for links some time after it came: an update without an
// edit time.
func (d *Discord) Unfurl(channel, message ID, url string) {}

// Pin pins a message: an update of it that is no edit.
func (d *Discord) Pin(channel, message ID) {}

// Erase deletes a message.
func (d *Discord) Erase(channel, message ID) {}

// React puts an emoji on a message. Empty who is as in Post.From.
func (d *Discord) React(channel, message ID, emoji string, who ID) {}

// Unreact takes it off again.
func (d *Discord) Unreact(channel, message ID, emoji string, who ID) {}

// Typing shows that somebody types.
func (d *Discord) Typing(channel, who ID) {}

// Press presses the button with that custom id under a message; ephemeral ones can be pressed too. false: there is
// no such button that can be pressed. Empty who is as in Post.From.
func (d *Discord) Press(channel, message ID, data string, who ID) (ID, bool) { return "", false }

// Pick chooses in a select menu.
func (d *Discord) Pick(channel, message ID, data string, values []string, who ID) (ID, bool) {
	return "", false
}

// Run runs a command. false: no such command is registered for that place.
func (d *Discord) Run(c Command) (ID, bool) { return "", false }

// Complete types in an option of a command.
func (d *Discord) Complete(c Command) (ID, bool) { return "", false }

// Submit sends the modal that an interaction was answered with; values are by custom id.
func (d *Discord) Submit(interaction ID, values map[string]string) (ID, bool) { return "", false }

// ---- what people see

// Visible returns the bot's messages in a channel or thread as people see them now, oldest first, ephemeral ones too.
func (d *Discord) Visible(channel ID) []Message { return nil }

// Messages returns all messages of a channel, oldest first.
func (d *Discord) Messages(channel ID) []Message { return nil }

// Message returns one message, ephemeral ones too.
func (d *Discord) Message(channel, id ID) (Message, bool) { return Message{}, false }

// Interaction returns what became of an interaction.
func (d *Discord) Interaction(id ID) (Interaction, bool) { return Interaction{}, false }

// Commands returns the bot's commands, those of a guild, or the global ones when it is empty.
func (d *Discord) Commands(guild ID) []Registered { return nil }

// TypingSeen says that the bot typed in a channel.
func (d *Discord) TypingSeen(channel ID) bool { return false }

// Acts returns what happened in a channel, empty for all of them, oldest first.
func (d *Discord) Acts(channel ID) []Act { return nil }

// Watch calls f for each act from now on, while the fake is locked: f must be quick and call nothing here.
func (d *Discord) Watch(f func(Act)) {}

// ---- the service's side

// Receivers returns how many gateway connections have a session and live.
func (d *Discord) Receivers() int { return 0 }

// Connections returns how many WebSockets are open, with or without a session.
func (d *Discord) Connections() int { return 0 }

// Identifies and Resumes count what came so far, accepted ones only.
func (d *Discord) Identifies() int { return 0 }

// Resumes returns how many resumes were accepted.
func (d *Discord) Resumes() int { return 0 }

// Unconfirmed returns how many events that people caused the sessions hold for which no heartbeat or resume has told
// a sequence number as high: what the service would send again after a resume. Without a session it counts those
// since the last one.
func (d *Discord) Unconfirmed() int { return 0 }

// Redeliver sends the newest n events that people caused once more, with new sequence numbers.
func (d *Discord) Redeliver(n int) {}

// Presence returns the newest status and activity that the bot set.
func (d *Discord) Presence() (status, activity string) { return "", "" }

// Calls returns how many requests a route got.
func (d *Discord) Calls(route string) int { return 0 }

// Routes returns the REST routes that the fake knows.
func (d *Discord) Routes() []string { return nil }

// Unknown returns the requests that met no route, as "METHOD path": what a client wants and the fake lacks.
func (d *Discord) Unknown() []string { return nil }

// Violations returns the requests that came inside a retry-after window, in words.
func (d *Discord) Violations() []string { return nil }

// Limit sets a route's buckets: most requests in per. 0 takes the limit off.
func (d *Discord) Limit(route string, most int, per time.Duration) {}

// LimitAll sets the bot's global limit. 0 takes it off.
func (d *Discord) LimitAll(most int, per time.Duration) {}

// Break adds a fault of REST requests. Faults are used up in order.
func (d *Discord) Break(f Fault) {}

// BreakGateway makes the gateway go wrong, until Heal or Mend.
func (d *Discord) BreakGateway(t GatewayTrouble) {}

// Mend ends one trouble of the gateway.
func (d *Discord) Mend(t GatewayTrouble) {}

// Heal takes all faults and windows off; requests that hang end. Revoke stays.
func (d *Discord) Heal() {}

// Revoke makes the server refuse the bot's token from now on: 401, and 4004 for live connections. Restore takes it
// back.
func (d *Discord) Revoke() {}

// Restore lets the token in again.
func (d *Discord) Restore() {}

// Reconnect sends op 7 to the live connections. They stay open for the client to close.
func (d *Discord) Reconnect() {}

// Invalidate sends op 9 to the live connections. Sessions that are not resumable are forgotten.
func (d *Discord) Invalidate(resumable bool) {}

// CloseGateway closes the live gateway connections with a close code: 4000 unknown error, 4004 authentication failed,
// 4009 session timed out, 4014 disallowed intents …; 0 cuts them with a reset.
func (d *Discord) CloseGateway(code int) {}

// Forget drops all sessions: the next resume is answered with op 9.
func (d *Discord) Forget() {}

// GuildOutage makes a guild unavailable, or available again.
func (d *Discord) GuildOutage(guild ID, out bool) {}
