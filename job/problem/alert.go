package problem

// Problems of rules, channels and silences of alerts.
var (
	JobWithoutApp      = say("job_without_app", "%.100q has no app; write app/name, such as %s/%.100s, or */%.100s for all apps")
	TooManyEvents      = say("too_many_events", "has %d events, but only %d exist: %s")
	RecoveredAlone     = say("recovered_alone", "has only recovered, which reports the end of other events; name those events as well")
	ThresholdUnused    = say("threshold_unused", "is given, but on does not include %s")
	ChannelIsHeartbeat = say("channel_is_heartbeat", "%q is a heartbeat channel, which receives no alerts")
	ChannelIsPager     = say("channel_is_pager", "%q is a PagerDuty channel, which gets no messages about started and succeeded runs")
	HeartbeatOfChannel = say("heartbeat_of_channel", "is heartbeat, which receives no alerts, but the channel is of type %s and rules may use it; choose another name")
	HeartbeatOfRules   = say("heartbeat_of_rules", "is heartbeat, which receives no alerts, but the channel is used by the rules %s")
	RateTooLow         = say("rate_too_low", "%d messages a minute are too few for a heartbeat every %s; give at least %d, or a longer every")
	TooManyKept        = say("too_many_kept", "there are already %d, which is the maximum; delete one first")
	TooManyWanted      = say("too_many_wanted", "there would be %d; at most %d are allowed")
	TooManySilences    = say("too_many_silences", "there are already %d silences, which is the maximum; end one first")

	NotAHeader      = say("not_a_header", "%.100q is not a valid header name")
	NotASCII        = say("not_ascii", "must contain only printable ASCII characters")
	NotHostAndPort  = say("not_host_and_port", "%q is not a host and port, such as mail.example.com:587")
	NotMail         = say("not_mail", "%q is not a mail address")
	NotMailSender   = say("not_mail", "%q is not a mail address, such as go-crontab@example.com")
	PasswordInClear = say("password_in_clear", "is none, which would send the password unencrypted; use starttls or tls")
	PasswordOfNoOne = say("password_of_no_one", "is missing, but a password is given; give the user whose password it is")

	Template             = say("template", "%s")
	TemplateDefines      = say("template_defines", "defines another template, which is not allowed")
	TemplateEmpty        = say("template_empty", "has no text in it")
	TemplateCalls        = say("template_calls", "calls another template, which is not allowed")
	TemplateRangeInRange = say("template_range_in_range", "has a range inside a range, which is not allowed")
	TemplateRange        = say("template_range", "has a range over something other than .Items, which is not allowed")
)
