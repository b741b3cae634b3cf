package config

import "time"

// Config is everything that can be set in one profile. Load makes it; it is never changed afterwards, so it may be shared
// without a lock.
type Config struct {
	HTTP        HTTP        `yaml:"http" doc:"the one HTTP listener: browser chat, health, metrics, webhooks"`
	Model       Model       `yaml:"model" short:"name" doc:"which language model answers"`
	Providers   Providers   `yaml:"providers" doc:"access to model providers"`
	Agent       Agent       `yaml:"agent" doc:"the agent loop, its budgets and time limits"`
	Compression Compression `yaml:"compression" doc:"when and how a long conversation is summarised"`
	Streaming   Streaming   `yaml:"streaming" doc:"answers that grow while the model writes"`
	Display     Display     `yaml:"display" doc:"what people see beside the answers"`
	Platforms   Platforms   `yaml:"platforms" doc:"the chat platforms" reload:"adapter"`
	Sessions    Sessions    `yaml:"sessions" doc:"how long conversations are kept"`
	Memory      Memory      `yaml:"memory" doc:"what the agent remembers between sessions" reload:"restart"`
	Terminal    Terminal    `yaml:"terminal" doc:"where and how commands run" reload:"restart"`
	Processes   Processes   `yaml:"processes" doc:"background processes of conversations" reload:"restart"`
	Delegation  Delegation  `yaml:"delegation" doc:"subagents"`
	Cron        Cron        `yaml:"cron" doc:"scheduled jobs"`
	Checkpoints Checkpoints `yaml:"checkpoints" doc:"pictures of the agent's directories, for /rollback" reload:"restart"`
	Tools       Tools       `yaml:"tools" doc:"which tools the agent has, and their limits" reload:"session"`
	Security    Security    `yaml:"security" doc:"guards"`
	Approvals   Approvals   `yaml:"approvals" doc:"what is asked before a dangerous command runs"`
	Privacy     Privacy     `yaml:"privacy" doc:"what the model learns about people" reload:"session"`
	Log         Log         `yaml:"log" doc:"the log"`
	Metrics     Metrics     `yaml:"metrics" doc:"Prometheus metrics"`
	Gateway     Gateway     `yaml:"gateway" doc:"the daemon itself: media, delivery, guards"`

	// GroupSessionsPerUser and the next ones have the names that the ecosystem knows.
	GroupSessionsPerUser  bool `yaml:"group_sessions_per_user" default:"true" doc:"in a group each person has a conversation of their own" reload:"restart"`
	ThreadSessionsPerUser bool `yaml:"thread_sessions_per_user" default:"false" doc:"in a thread each person has a conversation of their own; false: the thread shares one" reload:"restart"`
	MaxConcurrentSessions int  `yaml:"max_concurrent_sessions" default:"0" min:"0" max:"100000" words:"none,unlimited" doc:"how many turns may run at once; more wait; 0: no limit"`

	// AllowedUsers, AllowAllUsers and UnauthorizedDM hold for every platform that has no rule of its own.
	AllowedUsers   []string `yaml:"allowed_users" doc:"ids of people who may talk on any platform; * means everyone"`
	AllowAllUsers  bool     `yaml:"allow_all_users" default:"false" doc:"everyone may talk, on every platform"`
	UnauthorizedDM string   `yaml:"unauthorized_dm_behavior" oneof:"pair,ignore" doc:"what a stranger's direct message gets: a pairing code or silence; unset: pair, or ignore where an allowlist exists"`

	// CommandAllowlist is written by "always" as well.
	CommandAllowlist []string `yaml:"command_allowlist" check:"text" doc:"dangers that need no approval: their names, as /approvals shows them, or whole commands"`

	// Timezone is whose clock schedules are read on.
	Timezone string `yaml:"timezone" check:"zone" doc:"time zone of schedules and times that name none, such as Europe/Berlin; unset: the machine's"`

	FilterSilence bool `yaml:"filter_silence_narration" default:"true" doc:"answers that only narrate silence get the same notice as empty ones; false: they are shown"`

	HumanDelay HumanDelay `yaml:"human_delay" doc:"pauses between the parts of a long answer"`
}

// HTTP is the listener. Its secrets come from the environment or .env only.
type HTTP struct {
	Listen   string `yaml:"listen" default:"127.0.0.1:7878" check:"hostport" doc:"address and port to listen on; port 0 takes a free one; beyond loopback a password or token is required" reload:"restart"`
	Password Secret `yaml:"password" doc:"opens the browser chat; HERALD_HTTP_PASSWORD" reload:"restart"`
	Token    Secret `yaml:"token" doc:"bearer token for programs; HERALD_HTTP_TOKEN" reload:"restart"`
	// PublicURL is for links that Herald hands out; the listener does not need it.
	PublicURL string `yaml:"public_url" check:"url" doc:"the address under which people reach this listener, when a proxy stands before it" reload:"restart"`
}

// Sessions is how long conversations are kept. Only ended sessions are ever deleted.
type Sessions struct {
	AutoPrune             bool `yaml:"auto_prune" default:"true" doc:"delete ended sessions after retention_days"`
	RetentionDays         int  `yaml:"retention_days" default:"90" min:"1" max:"36500" doc:"days an ended session is kept"`
	VacuumAfterPrune      bool `yaml:"vacuum_after_prune" default:"true" doc:"give free pages back to the disk after a prune that freed a quarter of the file"`
	MinVacuumIntervalDays int  `yaml:"min_vacuum_interval_days" default:"30" min:"1" max:"3650" doc:"least days between two vacuums"`
	MinIntervalHours      int  `yaml:"min_interval_hours" default:"24" min:"1" max:"8760" doc:"least hours between two prunes"`
	MaxResumeMessages     int  `yaml:"max_resume_messages" default:"20000" min:"1" max:"1000000" doc:"most messages of a session that are loaded; older ones stay in the database"`
}

// Memory is what the agent remembers between sessions.
type Memory struct {
	Enabled            bool `yaml:"memory_enabled" default:"true" doc:"keep notes between sessions"`
	UserProfileEnabled bool `yaml:"user_profile_enabled" default:"true" doc:"keep a profile of the person"`
	CharLimit          int  `yaml:"memory_char_limit" default:"2200" min:"100" max:"1000000" doc:"most characters of the notes"`
	UserCharLimit      int  `yaml:"user_char_limit" default:"1375" min:"100" max:"1000000" doc:"most characters of the profile"`
	NudgeInterval      int  `yaml:"nudge_interval" default:"10" min:"0" max:"10000" doc:"messages of people between two reminders to save; 0: never" reload:"live"`
}

// Tools is which tools a session has, and the limits of their results.
type Tools struct {
	Toolsets   []string            `yaml:"toolsets" doc:"toolsets offered to the agent; empty: the platform's default"`
	Enabled    []string            `yaml:"enabled" doc:"tools offered beside those of the toolsets"`
	Disabled   []string            `yaml:"disabled" doc:"tools and toolsets never offered; wins over the two above"`
	PerPlatf   map[string][]string `yaml:"platform_toolsets" keys:"platform" doc:"toolsets by platform, in place of toolsets"`
	Output     ToolOutput          `yaml:"tool_output" doc:"limits of a tool's result" reload:"restart"`
	Timeouts   ToolTimeouts        `yaml:"timeouts" doc:"time limits of tool calls" reload:"restart"`
	Guardrails Guardrails          `yaml:"tool_loop_guardrails" doc:"when repeated failures of a tool are pointed out and ended" reload:"live"`
}

// ToolOutput is how much of a result stays in the conversation.
type ToolOutput struct {
	MaxChars     int `yaml:"max_result_size_chars" default:"100000" min:"1000" max:"10000000" doc:"characters of a result that stay in the conversation; the rest goes to a file"`
	TurnMaxChars int `yaml:"turn_budget_chars" default:"200000" min:"1000" max:"100000000" doc:"characters that the results of one model answer's calls may have together; those that end after it is used up go to files"`
	MaxBytes     int `yaml:"max_bytes" default:"50000" min:"1000" max:"10000000" doc:"bytes of a command's output that its result holds, from its beginning and end; the rest goes to a file"`
	PreviewChars int `yaml:"preview_chars" default:"1500" min:"0" max:"100000" doc:"characters of a result that went to a file which stay in the conversation"`
}

// ToolTimeouts are the time limits of tool calls.
type ToolTimeouts struct {
	Sequential time.Duration `yaml:"sequential_call" default:"420s" min:"1s" max:"24h" doc:"time limit of one call that runs alone"`
	Batch      time.Duration `yaml:"concurrent_batch" default:"420s" min:"1s" max:"24h" doc:"time limit of a group of calls that run side by side"`
}

// Guardrails is when repeated failures of a tool are pointed out, and when they end the turn.
type Guardrails struct {
	Warnings  bool           `yaml:"warnings_enabled" default:"true" doc:"tell the model that it repeats itself"`
	HardStop  bool           `yaml:"hard_stop_enabled" default:"true" doc:"end a turn that goes on all the same"`
	WarnAfter GuardrailWarn  `yaml:"warn_after" doc:"repetitions before a warning"`
	StopAfter GuardrailLimit `yaml:"hard_stop_after" doc:"repetitions before the end"`
}

// GuardrailWarn counts repetitions before a warning.
type GuardrailWarn struct {
	ExactFailure int `yaml:"exact_failure" default:"2" min:"1" max:"1000" doc:"the same call with the same arguments failed"`
	SameTool     int `yaml:"same_tool_failure" default:"3" min:"1" max:"1000" doc:"the same tool failed in a row"`
	NoProgress   int `yaml:"idempotent_no_progress" default:"2" min:"1" max:"1000" doc:"the same reading call gave the same result"`
}

// GuardrailLimit counts repetitions before the turn ends.
type GuardrailLimit struct {
	ExactFailure int `yaml:"exact_failure" default:"5" min:"1" max:"1000" doc:"the same call with the same arguments failed"`
	SameTool     int `yaml:"same_tool_failure" default:"8" min:"1" max:"1000" doc:"the same tool failed in a row"`
	NoProgress   int `yaml:"idempotent_no_progress" default:"5" min:"1" max:"1000" doc:"the same reading call gave the same result"`
}

// Security is guards that hold for every tool.
type Security struct {
	RedactSecrets bool `yaml:"redact_secrets" default:"true" doc:"mask what looks like a secret in tool results; logs, chats and the configured secrets themselves are masked in any case" reload:"restart"`
	// WriteRoots is the ecosystem's HERALD_WRITE_SAFE_ROOT, a path list.
	WriteRoots []string `yaml:"write_safe_roots" env:"HERALD_WRITE_SAFE_ROOT" sep:"path" check:"abspath" doc:"file tools write below these directories only; empty: anywhere that is not denied" reload:"restart"`
}

// Privacy is what the model learns about people.
type Privacy struct {
	RedactPII bool `yaml:"redact_pii" default:"false" doc:"the model sees hashes in place of user and chat ids"`
}

// Log is the daemon's own log on standard error and in the home.
type Log struct {
	Level  string `yaml:"level" default:"info" oneof:"trace,debug,info,warn,error" env:"HERALD_LOG" doc:"least level that is written"`
	Format string `yaml:"format" default:"auto" oneof:"auto,console,json" doc:"form on standard error; auto: console on a terminal, else json" reload:"restart"`
	File   bool   `yaml:"file" default:"true" doc:"also write JSON lines to logs/herald.log in the home" reload:"restart"`
	MaxMB  int    `yaml:"max_size_mb" default:"20" min:"1" max:"10000" doc:"megabytes before the file is rotated; three old ones are kept" reload:"restart"`
}

// Metrics is the /metrics page.
type Metrics struct {
	Enabled bool `yaml:"enabled" default:"true" doc:"serve /metrics on the HTTP listener" reload:"restart"`
}

// Gateway is the daemon's own behaviour: media, delivery, guards.
type Gateway struct {
	ConnectTimeout  time.Duration `yaml:"platform_connect_timeout" default:"30s" min:"1s" max:"1h" doc:"time limit of one attempt to connect a platform" reload:"adapter"`
	MaxInboundMedia Bytes         `yaml:"max_inbound_media_bytes" default:"128MiB" min:"1KiB" max:"4GiB" doc:"largest file taken from a chat" reload:"adapter"`
	MaxMessage      Bytes         `yaml:"max_message_bytes" default:"1MiB" min:"4KiB" max:"64MiB" doc:"longest text taken from a chat; a longer one is refused with a notice"`
	HistoryLimit    int           `yaml:"history_limit" default:"50" min:"0" max:"200" doc:"messages read of a thread's past when the bot is first spoken to in the middle of it; 0: none"`
	MaxPending      int           `yaml:"max_pending_per_session" default:"100" min:"1" max:"100000" doc:"messages that may wait in one conversation; more are refused with a notice" reload:"restart"`
	StrictMedia     bool          `yaml:"strict" default:"false" env:"HERALD_MEDIA_DELIVERY_STRICT" doc:"send only files from the caches, the allowed directories, or made recently"`
	MediaAllowDirs  []string      `yaml:"media_delivery_allow_dirs" env:"HERALD_MEDIA_ALLOW_DIRS" sep:"path" check:"abspath" doc:"directories whose files may be sent in strict mode"`
	TrustRecent     bool          `yaml:"trust_recent_files" default:"true" env:"HERALD_MEDIA_TRUST_RECENT_FILES" doc:"strict mode also sends files that are younger than trust_recent_files_seconds"`
	TrustRecentAge  time.Duration `yaml:"trust_recent_files_seconds" default:"600s" min:"0s" max:"24h" doc:"age up to which a file counts as made recently"`
	TrustEnv        bool          `yaml:"trust_env" default:"true" doc:"adapters honour HTTP_PROXY, HTTPS_PROXY and NO_PROXY" reload:"adapter"`
	DownloadHosts   []string      `yaml:"download_hosts" check:"server" doc:"servers inside your own network from which files of messages and pages that jobs watch may be fetched, as host, host:port or URL; others there are refused" reload:"adapter"`
	BotLoopGuard    BotLoopGuard  `yaml:"bot_loop_guard" doc:"stops two bots from talking to each other forever"`
	LockDir         string        `yaml:"lock_dir" check:"abspath" doc:"directory of the machine-wide token locks; unset: $XDG_STATE_HOME/herald/gateway-locks" reload:"restart"`
	Timestamps      bool          `yaml:"message_timestamps" default:"false" doc:"the model sees when each message was written"`
}

// BotLoopGuard stops two bots that answer each other without end.
type BotLoopGuard struct {
	Enabled   bool          `yaml:"enabled" default:"true" doc:"guard chats against bots that answer each other"`
	MaxEvents int           `yaml:"max_events" default:"20" min:"1" max:"10000" doc:"bot messages of one chat within the window that are let through"`
	Window    time.Duration `yaml:"window_seconds" default:"300s" min:"1s" max:"24h" doc:"the window"`
	Cooldown  time.Duration `yaml:"cooldown_seconds" default:"600s" min:"1s" max:"168h" doc:"silence towards bots of that chat afterwards"`
}

// HumanDelay is the pauses between the parts of a long answer.
type HumanDelay struct {
	Mode string `yaml:"mode" default:"off" oneof:"off,natural,custom" doc:"pause before the next part: none, by its length, or at random; both between min_ms and max_ms"`
	Min  int    `yaml:"min_ms" default:"800" min:"0" max:"60000" doc:"least pause in milliseconds"`
	Max  int    `yaml:"max_ms" default:"2500" min:"0" max:"60000" doc:"longest pause in milliseconds"`
}
