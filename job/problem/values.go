package problem

// Problems of a value of any field.
var (
	Other = say("other", "%v") // the message of an error that has no code of its own

	Empty         = say("empty", "is empty")
	Missing       = say("missing", "is missing")
	MissingPlural = say("missing", "are missing")
	Negative      = say("negative", "%v is negative")
	Zero          = say("zero", "is 0; want more, or leave it out for the default")

	NotBetween     = say("not_between", "%v is not between %v and %v")
	YearNotBetween = say("year_not_between", "the year %d is not between %d and %d")
	NotOneOf       = say("not_one_of", "%q is not one of %s")

	TooLong      = say("too_long", "is %d characters long, at most %d are taken")
	TooManyBytes = say("too_many_bytes", "is %d bytes long, at most %d are taken")
	TooManyIDs   = say("too_many", "has %d ids, at most %d are taken")
	TooMany      = say("too_many", "%d of them, at most %d are taken")

	NotUTF8          = say("not_utf8", "is not valid UTF-8")
	NotText          = say("not_text", "contains a NUL byte, or is not valid UTF-8")
	NULByte          = say("nul_byte", "contains a NUL byte, which bash cannot take")
	ControlCharacter = say("control_character", "%q contains a control character")
	OuterSpace       = say("outer_space", "%q begins or ends with white space")

	GivenAlready   = say("given_already", "%v is given already")
	GivenAlreadyIn = say("given_already", "%v is in it more than once")
	GivenAlreadyAs = say("given_already_as", "%v is given already, as %s")
	GivenTwice     = say("given_twice", "is given more than once")
	GivenBeside    = say("given_beside", "is given beside %s; a job does one thing, so leave one of %s out")
	NotWith        = say("not_with", "does not go with %s")
	OnlyWith       = say("only_with", "goes with %s only")

	Before       = say("before", "%s is before %s, %s")
	LiesAhead    = say("lies_ahead", "%s lies ahead: what is due from now on, the schedule starts")
	Passed       = say("passed", "%s has passed")
	InThePast    = say("in_the_past", "lies in the past")
	TooFarAhead  = say("too_far_ahead", "%s is more than %s away")
	AfterTheYear = say("after_the_year", "%s is after the year %d")
)

// Problems of references to missing objects.
var (
	NoGroup            = say("no_group", "there is no group %q")
	NoCalendar         = say("no_calendar", "there is no calendar %q")
	NoCalendarReadable = say("no_calendar", "there is no calendar %q that can be read")
	NoSecret           = say("no_secret", "there is no secret %q that jobs of the app %q may use")
	NoSecretOfAll      = say("no_secret_of_all", "there is no secret %q of all apps")
	NoChannel          = say("no_channel", "there is no channel %q")
)
