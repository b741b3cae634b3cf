package platforms

// Common is what every platform's settings have. Lists of people hold platform ids. A field of the platform's own with
// the same key replaces the one here.
type Common struct {
	// Enabled nil: on when the platform has its credentials. False wins over credentials.
	Enabled *bool `yaml:"enabled" doc:"switch the platform on or off; unset: on when its credentials are there"`

	AllowedUsers       []string      `yaml:"allowed_users" env:"{N}_ALLOWED_USERS" reload:"live" doc:"ids of people who may talk, in any chat; * means everyone"`
	GroupAllowedUsers  []string      `yaml:"group_allowed_users" env:"{N}_GROUP_ALLOWED_USERS" reload:"live" doc:"ids of people who may talk in groups"`
	GroupAllowedChats  []string      `yaml:"group_allowed_chats" env:"{N}_GROUP_ALLOWED_CHATS" reload:"live" doc:"ids of groups where everyone may talk"`
	AllowedChats       []string      `yaml:"allowed_chats" env:"{N}_ALLOWED_CHATS" doc:"ids of the only chats that are answered; empty: all that the other rules allow"`
	AllowFrom          []string      `yaml:"allow_from" reload:"live" doc:"ids of people who may talk, in any chat; * means everyone"`
	GroupAllowFrom     []string      `yaml:"group_allow_from" reload:"live" doc:"ids of people who may talk in groups"`
	AllowedRoles       []string      `yaml:"allowed_roles" env:"{N}_ALLOWED_ROLES" doc:"ids of roles whose people may talk, where the platform has roles (Discord)"`
	AllowAll           bool          `yaml:"allow_all" default:"false" env:"{N}_ALLOW_ALL_USERS" reload:"live" doc:"everyone on this platform may talk"`
	AllowUsernames     bool          `yaml:"allow_usernames" default:"false" reload:"live" doc:"the lists may hold @names; weaker than ids, because a name can change hands"`
	AllowBots          string        `yaml:"allow_bots" default:"none" oneof:"none,mentions,all" env:"{N}_ALLOW_BOTS" reload:"live" doc:"bots that may talk: none, those that mention us, or all"`
	AdminFrom          []string      `yaml:"allow_admin_from" reload:"live" doc:"ids of people who may use every command in direct chats; unset: everyone who may talk"`
	UserCommands       []string      `yaml:"user_allowed_commands" reload:"live" doc:"commands that the others may use in direct chats, beside /help and /whoami"`
	GroupAdminFrom     []string      `yaml:"group_allow_admin_from" reload:"live" doc:"the same as allow_admin_from, for groups"`
	GroupUserCommands  []string      `yaml:"group_user_allowed_commands" reload:"live" doc:"the same as user_allowed_commands, for groups"`
	UnauthorizedDM     string        `yaml:"unauthorized_dm_behavior" oneof:"pair,ignore" reload:"live" doc:"what a stranger's direct message gets; unset: the general value"`
	HomeChannel        HomeChannel   `yaml:"home_channel" short:"chat" reload:"live" doc:"where notices that belong to no conversation go"`
	CronSurface        string        `yaml:"cron_continuable_surface" default:"thread" oneof:"thread,in_channel" reload:"live" doc:"where a reply goes on with what a scheduled job has sent: in a thread that is opened for it, where the platform has threads, or in the channel itself"`
	ReplyTo            string        `yaml:"reply_to_mode" default:"first" oneof:"off,first,all" env:"{N}_REPLY_TO_MODE" reload:"live" doc:"which parts of an answer quote the question: none, the first, all"`
	RestartNotice      bool          `yaml:"gateway_restart_notification" default:"true" reload:"live" doc:"say in the home channel that Herald has restarted"`
	Typing             bool          `yaml:"typing_indicator" default:"true" reload:"live" doc:"show that an answer is being made"`
	Reactions          *bool         `yaml:"reactions" env:"{N}_REACTIONS" doc:"show with emoji on a message that it was seen and how its turn ended, in direct chats and where the bot is spoken to; unset: on where the platform can, on Telegram and Teams off"`
	TypingStatus       string        `yaml:"typing_status_text" check:"text" reload:"live" doc:"what the sign of life says while no tool runs, where the platform shows words; unset: the platform's own"`
	RateLimit          Rate          `yaml:"rate_limit" default:"on" doc:"sends of our own accord: on (the platform's numbers), off (a private server), or messages a second per chat"`
	ChannelPrompts     ChatTexts     `yaml:"channel_prompts" reload:"live" doc:"text added to the prompt of one chat or thread, by its id (a thread also as chat:thread); never stored"`
	ChannelOverrides   ChatOverrides `yaml:"channel_overrides" reload:"live" doc:"another model or prompt for one chat or thread, by its id; a thread may also be written chat:thread"`
	RequireMention     bool          `yaml:"require_mention" default:"false" env:"{N}_REQUIRE_MENTION" doc:"in groups only messages that speak to the bot are answered"`
	FreeResponseChats  []string      `yaml:"free_response_channels" env:"{N}_FREE_RESPONSE_CHATS" doc:"ids of groups where require_mention does not hold"`
	MentionPatterns    []string      `yaml:"mention_patterns" check:"regexp" doc:"patterns, in any case, that count as speaking to the bot"`
	BotsRequireMention bool          `yaml:"bots_require_mention" default:"true" doc:"a bot that may talk must speak to us, even where people need not"`
}

// Shared is the Shared of Settings for a platform whose lists need no change.
func (c Common) Shared() Common { return c }

// Starts reports whether a platform is to be started that has its credentials or not.
func (c Common) Starts(credentials bool) bool {
	if c.Enabled != nil {
		return *c.Enabled
	}
	return credentials
}

// ChatTexts and ChatOverrides are keyed by the platform's own chat or thread id.
type (
	ChatTexts     map[string]string
	ChatOverrides map[string]ChatOverride
)

// ChatOverride replaces settings in one chat. The order is: the session's /model, this, the general one.
type ChatOverride struct {
	Model        string `yaml:"model" check:"text" doc:"the model's name"`
	Provider     string `yaml:"provider" oneof:"openai,anthropic,openrouter,ollama,demo" doc:"who serves it"`
	SystemPrompt string `yaml:"system_prompt" check:"long" doc:"text in place of the whole prompt; never stored"`
}

// HomeChannel is where notices that belong to no conversation go. Setting it does not switch the platform on.
type HomeChannel struct {
	Chat   string `yaml:"chat" env:"{N}_HOME_CHANNEL" check:"text" doc:"the chat's id"`
	Thread string `yaml:"thread" env:"{N}_HOME_CHANNEL_THREAD_ID" check:"text" doc:"the thread's id, if it is one"`
	Name   string `yaml:"name" default:"Home" env:"{N}_HOME_CHANNEL_NAME" check:"text" doc:"its name for people"`
}

// IsSet reports whether there is a home channel.
func (h HomeChannel) IsSet() bool { return h.Chat != "" }
