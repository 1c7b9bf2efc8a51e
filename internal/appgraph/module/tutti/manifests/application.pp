# Says more about an application than its components do. The catalog of any one node may have it; it manages nothing.
#
# @param description  one sentence for people
# @param parameters   what the instance is made with; shown, never used
# @param components   which components there should be: a missing one is shown as a problem
define tutti::application (
  String $description = '',
  Hash[String, Data] $parameters = {},
  Array[Tutti::Ref] $components = [],
) {
  assert_type(Tutti::Ref, $title)
}
