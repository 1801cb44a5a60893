package problem

// Problems of a value of any field.
var (
	Other = say("other", "%v") // the message of an error that has no code of its own

	Empty         = say("empty", "is empty")
	Missing       = say("missing", "is missing")
	MissingPlural = say("missing", "are missing")
	Negative      = say("negative", "%v is negative")
	Zero          = say("zero", "is 0; give a larger value, or leave it out for the default")

	NotBetween     = say("not_between", "%v is not between %v and %v")
	YearNotBetween = say("year_not_between", "the year %d is not between %d and %d")
	NotOneOf       = say("not_one_of", "%q is not one of %s")

	TooLong      = say("too_long", "is %d characters long; at most %d are allowed")
	TooManyBytes = say("too_many_bytes", "is %d bytes long; at most %d are allowed")
	TooManyIDs   = say("too_many", "has %d ids; at most %d are allowed")
	TooMany      = say("too_many", "has %d entries; at most %d are allowed")

	NotUTF8          = say("not_utf8", "is not valid UTF-8")
	NotText          = say("not_text", "contains a NUL byte, or is not valid UTF-8")
	NULByte          = say("nul_byte", "contains a NUL byte, which bash cannot read")
	ControlCharacter = say("control_character", "%q contains a control character")
	OuterSpace       = say("outer_space", "%q begins or ends with white space; remove it")

	GivenAlready   = say("given_already", "%v is given twice")
	GivenAlreadyIn = say("given_already", "%v appears more than once")
	CodeTwice      = say("code_twice", "%v is also in %s; an exit code can only mean one of the two")
	GivenAlreadyAs = say("given_already_as", "%v is already given as %s")
	GivenTwice     = say("given_twice", "is given more than once")
	GivenBeside    = say("given_beside", "conflicts with %s: a job does only one thing, so keep one of %s")
	NotWith        = say("not_with", "cannot be used with %s")
	OnlyWith       = say("only_with", "can only be used with %s")

	Before       = say("before", "%s is before %s, %s")
	LiesAhead    = say("lies_ahead", "%s is in the future; the schedule starts the due times from now on")
	Passed       = say("passed", "%s is in the past")
	InThePast    = say("in_the_past", "is in the past")
	TooFarAhead  = say("too_far_ahead", "%s is more than %s from now")
	AfterTheYear = say("after_the_year", "%s is after the year %d")
)

// Problems of references to missing objects.
var (
	NoGroup            = say("no_group", "there is no group %q")
	NoCalendar         = say("no_calendar", "there is no calendar %q")
	NoCalendarReadable = say("no_calendar", "there is no calendar %q that can be read")
	NoSecret           = say("no_secret", "there is no secret %q that jobs of app %q can use")
	NoSecretOfAll      = say("no_secret_of_all", "there is no secret %q for all apps")
	NoUpstream         = say("no_upstream", "there is no job %q to follow")
	FollowsItself      = say("follows_itself", "the job would follow itself: %s")
	NoChannel          = say("no_channel", "there is no channel %q")
)
