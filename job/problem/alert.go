package problem

// Problems of rules, channels and silences of alerts.
var (
	JobWithoutApp      = say("job_without_app", "%.100q has no app; write it as app/name, such as %s/%.100s, or */%.100s for all apps")
	TooManyEvents      = say("too_many_events", "%d of them, and there are %d: %s")
	RecoveredAlone     = say("recovered_alone", "has recovered alone; it tells that something is over of which the rule has told: name that, too")
	ThresholdUnused    = say("threshold_unused", "is given, but on does not name %s")
	ChannelIsHeartbeat = say("channel_is_heartbeat", "%q is a heartbeat, to which no alert goes")
	HeartbeatOfChannel = say("heartbeat_of_channel", "is heartbeat, to which no alert goes, but the channel is a %s which rules may name; choose another name")
	HeartbeatOfRules   = say("heartbeat_of_rules", "is heartbeat, to which no alert goes, but the rules %s name the channel")
	RateTooLow         = say("rate_too_low", "%d messages a minute are too few for a heartbeat each %s; want at least %d, or a longer every")
	TooManyKept        = say("too_many_kept", "there are %d already, and no more are kept")
	TooManyWanted      = say("too_many_wanted", "there would be %d, and no more than %d are kept")
	TooManySilences    = say("too_many_silences", "there are %d silences already, and no more are kept; end one")

	NotAHeader      = say("not_a_header", "%.100q is no name of a header")
	NotASCII        = say("not_ascii", "has something but printable ASCII in it")
	NotHostAndPort  = say("not_host_and_port", "%q is no host and port, such as mail.example.com:587")
	NotMail         = say("not_mail", "%q is no mail address")
	NotMailSender   = say("not_mail", "%q is no mail address, such as go-crontab@example.com")
	PasswordInClear = say("password_in_clear", "is none, which would send the password so that everybody on the way can read it; use starttls or tls")
	PasswordOfNoOne = say("password_of_no_one", "is missing; the password is of whom?")

	Template             = say("template", "%s")
	TemplateDefines      = say("template_defines", "defines another template, which is not taken")
	TemplateEmpty        = say("template_empty", "has nothing in it")
	TemplateCalls        = say("template_calls", "calls another template, which is not taken")
	TemplateRangeInRange = say("template_range_in_range", "has a range within a range, which is not taken")
	TemplateRange        = say("template_range", "has a range over something but .Items, which is not taken")
)
