# Says that this node carries a component of an application. It manages nothing on the node.
#
# @param application  the application, Model[instance]
# @param produces     capabilities that others may need
# @param consumes     capabilities that this component needs: whoever produces them runs first
#
# @example The database of a shop
#   tutti::component { 'Shop::Db[eu]':
#     application => 'Shop[eu]',
#     produces    => 'Sql[eu]',
#   }
define tutti::component (
  Tutti::Ref $application,
  Variant[Tutti::Ref, Array[Tutti::Ref]] $produces = [],
  Variant[Tutti::Ref, Array[Tutti::Ref]] $consumes = [],
) {
  assert_type(Tutti::Ref, $title)
}
