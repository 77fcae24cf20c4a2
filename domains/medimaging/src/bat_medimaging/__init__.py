"""Fictional medical-imaging workflows for bat-core: segmentation and classification. Not clinical."""

from bat_medimaging.domain import MedImagingDomain

__all__ = ["MedImagingDomain"]
