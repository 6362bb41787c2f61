"""The web view and the receiver of `counterpoint serve`."""
