package slacktest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// event queues an event when the app hears it: subscribed, with the scope, and in the channel (nil for events
// of none). The caller holds mu. It returns the event's id, empty when the app doesn't hear it.
func (s *Server) event(t *team, c *channel, kind string, inner object) string {
	name := kind
	if c != nil {
		if c.WithoutBot {
			return ""
		}
		if kind == "message" {
			name = "message." + map[ChannelKind]string{Public: "channels", Private: "groups", IM: "im", MPIM: "mpim"}[c.Kind]
		}
	}
	if s.o.Events != nil && !slices.Contains(s.o.Events, name) {
		return ""
	}
	if scopes := eventScopes[name]; len(scopes) > 0 && !slices.ContainsFunc(scopes, t.granted) {
		return ""
	}
	return s.deliver(t, encode(inner))
}

// deliver queues an event as an envelope.
func (s *Server) deliver(t *team, inner json.RawMessage) string {
	id := s.id("Ev")
	payload := object{
		"token": "slacktest-verification", "team_id": t.ID, "context_team_id": t.ID, "context_enterprise_id": nil, "api_app_id": s.o.AppID,
		"event": inner, "type": "event_callback", "event_id": id, "event_time": time.Now().Unix(), "is_ext_shared_channel": false,
		"event_context":  "4-" + id,
		"authorizations": []object{{"enterprise_id": nil, "team_id": t.ID, "user_id": t.BotUser, "is_bot": true, "is_enterprise_install": false}},
	}
	s.enqueue(&envelope{kind: "events_api", event: id, payload: encode(payload)})
	return id
}

// messageEvents sends message, and app_mention where the bot is mentioned in a shared channel. The caller
// holds mu.
func (s *Server) messageEvents(c *channel, m *message) {
	inner := s.wire(c, m)
	inner["channel"], inner["channel_type"], inner["event_ts"] = c.ID, string(c.Kind), m.TS
	delete(inner, "reactions")
	if a := c.threads[m.Thread]; a != nil && a.user != "" && c.Kind == IM && !m.Own {
		inner["assistant_thread"] = object{"action_token": "slacktest-" + m.TS}
	}
	if m.fileInfoOnly() {
		inner["files"] = []object{{"id": m.files[0].ID, "created": time.Now().Unix(), "mode": "file_access", "file_access": "check_file_info", "user": m.User}}
	}
	s.event(c.team, c, "message", inner)
	if m.Own || c.Kind == IM || !strings.Contains(m.Raw, "<@"+c.team.BotUser) || m.Subtype == "channel_join" {
		return
	}
	mention := maps.Clone(inner)
	mention["type"] = "app_mention"
	delete(mention, "channel_type")
	if m.Subtype == "file_share" || m.Subtype == "thread_broadcast" {
		delete(mention, "subtype")
	}
	s.event(c.team, c, "app_mention", mention)
}

func (m *message) fileInfoOnly() bool {
	return len(m.files) > 0 && m.files[0].mode == "check_file_info"
}

// Push delivers an event of any kind: event is the inner event as JSON. It returns the event id.
func (s *Server) Push(team string, event json.RawMessage) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !json.Valid(event) {
		panic(fmt.Sprintf("slacktest: the event is no JSON: %s", event))
	}
	return s.deliver(s.team(team), event)
}

// eventScopes are the bot events with the scopes of which one is needed.
var eventScopes = map[string][]string{
	"app_context_changed":              {},
	"app_home_opened":                  {},
	"app_mention":                      {"app_mentions:read"},
	"app_uninstalled":                  {},
	"assistant_thread_context_changed": {"assistant:write"},
	"assistant_thread_started":         {"assistant:write"},
	"call_rejected":                    {"calls:read"},
	"channel_archive":                  {"channels:read"},
	"channel_created":                  {"channels:read"},
	"channel_deleted":                  {"channels:read"},
	"channel_history_changed":          {"channels:history"},
	"channel_id_changed":               {"channels:read", "groups:read", "im:read", "mpim:read"},
	"channel_left":                     {"channels:read"},
	"channel_rename":                   {"channels:read"},
	"channel_shared":                   {"channels:read", "groups:read"},
	"channel_unarchive":                {"channels:read"},
	"channel_unshared":                 {"channels:read", "groups:read"},
	"dnd_updated_user":                 {"dnd:read"},
	"email_domain_changed":             {"team:read"},
	"emoji_changed":                    {"emoji:read"},
	"entity_details_requested":         {},
	"file_change":                      {"files:read"},
	"file_created":                     {"files:read"},
	"file_deleted":                     {"files:read"},
	"file_public":                      {"files:read"},
	"file_shared":                      {"files:read"},
	"file_unshared":                    {"files:read"},
	"function_executed":                {},
	"group_archive":                    {"groups:read"},
	"group_close":                      {"groups:read"},
	"group_deleted":                    {"groups:read"},
	"group_history_changed":            {"groups:history"},
	"group_left":                       {"groups:read"},
	"group_open":                       {"groups:read"},
	"group_rename":                     {"groups:read"},
	"group_unarchive":                  {"groups:read"},
	"im_close":                         {"im:read"},
	"im_created":                       {"im:read"},
	"im_history_changed":               {"im:history"},
	"im_open":                          {"im:read"},
	"link_shared":                      {"links:read"},
	"member_joined_channel":            {"channels:read", "groups:read"},
	"member_left_channel":              {"channels:read", "groups:read"},
	"message.app_home":                 {},
	"message.channels":                 {"channels:history"},
	"message.groups":                   {"groups:history"},
	"message.im":                       {"im:history"},
	"message.mpim":                     {"mpim:history"},
	"message_metadata_deleted":         {"metadata.message:read"},
	"message_metadata_posted":          {"metadata.message:read"},
	"message_metadata_updated":         {"metadata.message:read"},
	"pin_added":                        {"pins:read"},
	"pin_removed":                      {"pins:read"},
	"reaction_added":                   {"reactions:read"},
	"reaction_removed":                 {"reactions:read"},
	"shared_channel_invite_accepted":   {"conversations.connect:manage"},
	"shared_channel_invite_approved":   {"conversations.connect:manage"},
	"shared_channel_invite_declined":   {"conversations.connect:manage"},
	"shared_channel_invite_received":   {"conversations.connect:read"},
	"subteam_created":                  {"usergroups:read"},
	"subteam_members_changed":          {"usergroups:read"},
	"subteam_self_added":               {"usergroups:read"},
	"subteam_self_removed":             {"usergroups:read"},
	"subteam_updated":                  {"usergroups:read"},
	"team_access_granted":              {},
	"team_access_revoked":              {},
	"team_domain_change":               {"team:read"},
	"team_join":                        {"users:read"},
	"team_rename":                      {"team:read"},
	"tokens_revoked":                   {},
	"user_change":                      {"users:read"},
	"user_huddle_changed":              {"users:read"},
	"user_profile_changed":             {"users:read"},
	"user_status_changed":              {"users:read"},
}

// botScopes are the scopes that a bot token can have, as far as a chat app would ask for them.
var botScopes = strings.Fields(`app_mentions:read assistant:write bookmarks:read bookmarks:write calls:read calls:write
	canvases:read canvases:write channels:history channels:join channels:manage channels:read channels:write.invites
	channels:write.topic chat:write chat:write.customize chat:write.public commands conversations.connect:manage
	conversations.connect:read conversations.connect:write dnd:read emoji:read files:read files:write groups:history
	groups:read groups:write groups:write.invites groups:write.topic im:history im:read im:write im:write.topic
	incoming-webhook links.embed:write links:read links:write lists:read lists:write metadata.message:read mpim:history
	mpim:read mpim:write mpim:write.invites mpim:write.topic pins:read pins:write reactions:read reactions:write reminders:read reminders:write
	remote_files:read remote_files:share remote_files:write search:read.files search:read.public search:read.users team.billing:read
	team.preferences:read team:read tokens.basic triggers:read triggers:write usergroups:read usergroups:write users.profile:read
	users:read users:read.email users:write workflow.steps:execute workflows.templates:read workflows.templates:write`)

// AllScopes returns the bot scopes that the fake knows.
func AllScopes() []string { return slices.Clone(botScopes) }
