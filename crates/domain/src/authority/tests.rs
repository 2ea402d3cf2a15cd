//! Tests of scopes and rights.

use super::*;
use crate::audit::Actor;
use crate::ids::WorkspaceId;

fn id(number: u128) -> WorkspaceId {
    WorkspaceId::from_uuid(uuid::Uuid::from_u128(number))
}

fn scope(access: ManagementAccess, workspaces: Option<Vec<WorkspaceId>>) -> ManagementScope {
    ManagementScope::try_new(access, workspaces).unwrap()
}

#[test]
fn scope_has_one_to_a_hundred_workspaces_in_order_without_duplicates() {
    let ordered = scope(ManagementAccess::Read, Some(vec![id(3), id(1), id(3), id(2)]));
    assert_eq!(ordered.workspaces(), Some([id(3), id(1), id(2)].as_slice()));
    assert!(ordered.contains(id(1)) && ordered.contains(id(3)) && !ordered.contains(id(4)));
    let many = |count| ManagementScope::try_new(ManagementAccess::Write, Some((0..count).map(id).collect()));
    assert_eq!(many(0), Err(InvalidManagementScope));
    assert_eq!(many(100).unwrap().workspaces().unwrap().len(), 100);
    assert_eq!(many(101), Err(InvalidManagementScope));
    let repeated = ManagementScope::try_new(ManagementAccess::Write, Some(vec![id(1); 101]));
    assert_eq!(repeated.unwrap().workspaces(), Some([id(1)].as_slice()), "duplicates do not count");
}

#[test]
fn only_write_access_to_all_workspaces_is_unrestricted() {
    for access in ManagementAccess::ALL {
        let of_all = scope(access, None);
        assert_eq!(of_all.is_unrestricted(), access == ManagementAccess::Write, "{access:?}");
        assert!(of_all.contains(id(7)));
        assert!(!scope(access, Some(vec![id(1)])).is_unrestricted(), "{access:?}");
    }
    assert_eq!(ManagementScope::UNRESTRICTED, scope(ManagementAccess::Write, None));
}

#[test]
fn check_grants_rights_by_access_and_workspaces() {
    use Right::{Keys, Read, ReadAll, Unrestricted, Write};
    type Row = (ManagementAccess, Option<Vec<WorkspaceId>>, &'static [Right]);
    let one = || Some(vec![id(1)]);
    let table: [Row; 6] = [
        (ManagementAccess::Read, one(), &[Read]),
        (ManagementAccess::Keys, one(), &[Read, Keys]),
        (ManagementAccess::Write, one(), &[Read, Keys, Write]),
        (ManagementAccess::Read, None, &[Read, ReadAll]),
        (ManagementAccess::Keys, None, &[Read, Keys, ReadAll]),
        (ManagementAccess::Write, None, &[Read, Keys, Write, ReadAll, Unrestricted]),
    ];
    for (access, workspaces, granted) in table {
        let by = Authority::of_key(Actor::system(), scope(access, workspaces.clone()));
        for right in Right::ALL {
            let expected = if granted.contains(&right) { Ok(()) } else { Err(Restricted { needs: right }) };
            assert_eq!(by.check(right), expected, "{access:?} {workspaces:?} {right:?}");
        }
        assert!(!by.is_operator());
        assert_eq!(by.sees_all(), workspaces.is_none());
        assert!(by.sees(id(1)));
        assert_eq!(by.sees(id(2)), workspaces.is_none());
    }
    let operator = Authority::system();
    assert!(operator.is_operator() && Right::ALL.iter().all(|right| operator.check(*right).is_ok()));
}

#[test]
fn scope_view_is_json() {
    let view = |workspaces| scope(ManagementAccess::Keys, workspaces).view().text().to_owned();
    assert_eq!(view(None), r#"{"access":"keys","workspaces":null}"#);
    let expected = r#"{"access":"keys","workspaces":["00000000-0000-0000-0000-000000000001"]}"#;
    assert_eq!(view(Some(vec![id(1)])), expected);
}
